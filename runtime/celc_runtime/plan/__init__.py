"""The meaning of one query, as its generated module says it: columns, kinds, windows, expressions.

Data only, which the compiler makes and its `emit` prints. `plan` and `row_pattern` have the whole
of a query, `expressions` the trees of SELECT, `relevance` the events that can change an answer,
`conditions` the conditions on texts, `strategy` the way in which a query runs, `past_columns` the
order of the columns of past events. Only `schemas`, `compact_form` and `transitions` need Arrow or
numpy. Imports nothing else of the runtime.
"""
