"""Structured Streaming: `match_stream`.

In: a `Program` and a streaming DataFrame. Out: a streaming DataFrame of matches. `match` makes the
plan of three functions (`tasks`), one of them called by Spark's `processor`; `partition` runs one
partition from its `state`; `rows` has events as bytes; `finish` ends a stream, `monitor` watches
one. Imports `spark`, `run` and below.
"""
