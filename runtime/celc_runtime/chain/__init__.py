"""Queries over queries: the rows of one query are events of the next (`FROM rises, Quotes`).

A query that reads others is run like any query, over a table that this folder makes: the rows of
the declared streams that it reads, and the rows of the queries, in the order of their ends. On one
machine each query of a chain is run once (`tables`). On Spark the levels are DataFrames
(`on_spark`).
"""
