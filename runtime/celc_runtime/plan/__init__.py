"""The meaning of one query, as its generated module says it: columns, kinds, windows, expressions.

Data only: the compiler makes it, and its `emit` prints it. `plan` and `row_pattern` hold whole
queries, `expressions` the trees of SELECT, `relevance` the events that can change an answer,
`conditions` the conditions on texts, `strategy` how a query runs, `past_columns` the order of the
columns of past events. Only `schemas`, `compact_form` and `transitions` need Arrow or NumPy.
Imports nothing else of the runtime.
"""
