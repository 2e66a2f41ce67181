"""Runs MATCH_RECOGNIZE: a table of rows in partitions → the rows of the matches.

`passes` and `search` are the kernels that find matches, `measures` those that compute columns of
the result, `run` is the loop around them, `query` what users call, `on_spark` the way into Spark.
Takes what a generated module holds (`plan`), and Arrow tables.
"""
