"""What becomes of matches that are no rows of their own: groups of them, and their totals.

Imports: the source.
"""
