"""Structured Streaming: `match_stream`.

In: a `Program` and a streaming DataFrame. Out: a streaming DataFrame of matches. `match` makes the
plan of three functions (`tasks`); Spark's `processor` calls one of them. `one_bucket/` runs one
bucket of partitions in one micro-batch. `stored/` has its events and its state as bytes. `finish`
ends a stream, `monitor` watches one. Imports `spark`, `run` and below.
"""
