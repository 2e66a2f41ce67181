"""Events in: Arrow, pandas and plain values → the columns that kernels read."""
