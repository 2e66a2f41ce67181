"""Structured Streaming: `match_stream`.

In: a `Program` and a streaming DataFrame. Out: a streaming DataFrame of matches. `match` puts three
functions one behind the other (`tasks`); `partition` runs one partition from its `state`; `rows` is
the form of events on the wire; `finish` and `monitor` end and watch a stream. Imports `spark`,
`run` and below.
"""
