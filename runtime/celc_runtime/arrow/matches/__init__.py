"""Matches out: what kernels found → Arrow batches."""
