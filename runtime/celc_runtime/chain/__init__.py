"""Queries over queries: the rows of one query are events of the next (`FROM rises, Quotes`).

A query that reads others is run like any query, over a table that this folder makes (`rows`): the
rows of the declared streams that it reads, and the rows of the queries, in the order of their ends.
A table runs each query of a chain once (`tables`). A stream of batches runs all of them together
(`run`), and so does a task of Spark where all have one PARTITION BY; else each is a DataFrame
(`on_spark`).
"""
