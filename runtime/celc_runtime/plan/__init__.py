"""The meaning of one query, as its generated module says it: columns, kinds, windows, expressions.

Data only. `plan` has the schemas of input and output, `expressions` the trees of SELECT, `relevant`
the events that can change an answer, `conditions` those on texts, `errors` what users can catch.
Imports nothing else of the runtime.
"""
