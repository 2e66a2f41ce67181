"""Kernels: Numba and numpy, no Arrow, no objects for an event.

`arena` is the graph of partial matches, `batch` the events. `union_lists` and `key_tables` serve
updates. `listing`, `runs`, `checked_listing`, `window_selection` and `latest_walk` list matches.
`definition` finds them by the definitions, with `open_questions` and `preferences`.
`spark_arithmetic` computes as Spark SQL does.
Imports `jit` and the data of `plan`.
"""
