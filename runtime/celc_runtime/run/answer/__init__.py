"""What becomes of the matches: rows of matches, of groups of them, of their totals, or graphs.

Imports: the source, the walk.
"""
