"""Bounds of piles: the least value of the matches in a pile that a later event is compared with.

Values are compared as whole numbers in the same order: numbers and times as they are, real numbers
by `spark_arithmetic.key_of_real`, and either with all bits turned where a condition asks for less.
"""

NO_BOUND = 2**63 - 1
"""The bound of a pile without matches, and of one whose value is NULL: no value is beyond it."""

LEAST_KEY = -(2**63)
"""What NULL counts as where it is the later value: beyond no bound."""
