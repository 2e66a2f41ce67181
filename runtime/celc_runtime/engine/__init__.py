"""Kernels: Numba and numpy, no Arrow, no objects for an event.

From the bottom up: the `arena` of partial matches; how matches are found in it (`walk`), and what
is known of absent events there (`past`); how an event changes it (`update`). Beside it: `totals` of
matches that nobody lists, the possible `worlds` of uncertain times, the matches by `definition`,
and `values`, which computes as Spark SQL does. Imports `jit` and the data of `plan`.
"""
