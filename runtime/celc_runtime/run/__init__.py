"""One run of a query over a stream of batches: the loop around the kernels.

In: a `Program` and record batches in order. Out: record batches of matches. `run` has the loop;
each way to update and each way to list has one class here, behind one protocol, made from the
program's strategy. Imports `arrow`, `program` and below.
"""
