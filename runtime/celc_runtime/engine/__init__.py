"""Kernels: Numba and numpy, no Arrow, no objects for an event.

`arena` is the graph of partial matches; `union_lists` updates it by tables; `listing` and `runs`
list matches; `definition` evaluates formulas by their definitions; `spark_arithmetic` computes as
Spark SQL does. Imports `jit` and the data of `plan`.
"""
