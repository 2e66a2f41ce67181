"""Rows of a DataFrame on their way to tasks: columns, keys, orders, and what is left out.

`columns`, `key_columns` and `event_types` read and check columns, `pushdown` leaves out rows that
cannot matter, and `probe` asks Spark about a DataFrame.
"""
