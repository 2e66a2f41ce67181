"""Which matches stay, and when that is known: at the end of a match, or later.

Imports: the source, the past, what a walk has left in the buffers.
"""
