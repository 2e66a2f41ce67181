"""The meaning of one query, as its generated module says it: columns, kinds, windows, expressions.

Data only. `plan` has the schemas of input and output, `expressions` the trees of SELECT,
`relevance` the events that can change an answer, `conditions` the conditions on texts, `strategy`
and `transitions` the way in which a query runs, `compact_form` what compact answers say of
themselves, `errors` the errors that users can catch. Imports nothing else of the runtime.
"""
