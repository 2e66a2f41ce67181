"""Rows of a DataFrame on their way to tasks: columns, keys, orders, and what is left out."""
