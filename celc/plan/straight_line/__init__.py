"""Straight-line updates: the piles of partial matches, their bounds, and the shape of matches.

`piles` is the entry. `passing` rewrites the tables for it first.
"""
