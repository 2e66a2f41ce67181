"""One run of a query over a stream of batches: the loop around the kernels.

In: a `Program` and record batches in order. Out: record batches of matches. `run` has the loop.
Each room answers one question: whose events (`source`), how an event changes the partial matches
(`update`), how matches are found (`walk`), which matches stay (`choice`), and what becomes of them
(`answer`). `past` has the past events that conditions read. Imports `arrow`, `program` and below.
"""
