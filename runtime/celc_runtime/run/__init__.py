"""One run of a query over a stream of batches: the loop around the kernels.

In: a `Program` and record batches in order. Out: record batches of matches. `run` has the loop. It
asks five questions, a room for each: whose events (`source`), how an event changes the partial
matches (`update`), how matches are found (`walk`), which of them stay (`choice`) and what becomes
of them (`answer`). The `past` are events that conditions ask for. Imports `arrow`, `program` and
below.
"""
