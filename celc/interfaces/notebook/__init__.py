"""Queries as cells of a notebook: `%load_ext celc`, then `%%cel`.

`magic` runs a cell, and shows errors as text with their places. `completing` answers the Tab key.
"""
