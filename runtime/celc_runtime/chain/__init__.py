"""Queries over queries: the rows of one query are events of the next (`FROM rises, Quotes`).

A query that reads others runs like any query, over a table that this folder makes (`rows`): the
rows of the declared streams that it reads, and the rows of the queries, in the order of their ends.
For a table, each query of a chain runs once (`tables`). For a stream of batches, all of them run
together (`run`), also in a task of Spark if all have the same PARTITION BY. Otherwise each is a
DataFrame (`on_spark`).
"""
