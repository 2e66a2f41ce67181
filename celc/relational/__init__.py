"""A query of single events as joins: the text of one SELECT.

In: a resolved query (`celc.core`). Out: the text of SQL, for Spark or DuckDB, over a table `events`
whose columns the runtime makes (`celc_runtime.plan.joins`).
`relate` makes relations of the formula, `select` makes SQL of these, with the expressions of
`expressions`. Imports the core, and sqlglot.
"""
