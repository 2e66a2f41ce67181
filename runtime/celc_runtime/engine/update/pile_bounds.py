"""Bounds of piles: the least value in a pile that a later event is compared with.

Values are compared as whole numbers in the same order. Whole numbers and times stay as they are,
real numbers go through `spark_arithmetic.key_of_real`. If a condition asks for less, all bits are
inverted.
"""

NO_BOUND = 2**63 - 1  # of a pile without matches, or whose value is NULL: no value exceeds it

LEAST_KEY = -(2**63)  # what a later value counts as that is NULL: it exceeds no bound
