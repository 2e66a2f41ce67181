"""Events of uncertain time: which orders are possible, and how likely each is.

Imports: the arena's tables of keys.
"""
