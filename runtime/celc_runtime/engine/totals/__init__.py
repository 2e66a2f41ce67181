"""All matches of an event at once: their number, their sums and their union, without listing any.

Imports: the arena, values.
"""
