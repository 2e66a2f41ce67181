"""MATCH_RECOGNIZE on Structured Streaming: `match_stream`.

`match` makes the plan of a stream in the three steps of `celc_runtime.stream`. `reading` shows the
table to that room as a stream of events of one type. `early` finds what a row says by itself before
it is shuffled. `bucket` runs the rows of a bucket. `decided` finds the matches that no later row
can change, by the loop of `loop`, and holds the argument why these are all; `futures` are what
later rows can make of a start.
"""
