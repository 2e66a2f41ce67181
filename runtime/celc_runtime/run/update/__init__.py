"""How an event changes the partial matches: the kernel of a run, and the memory it alone needs.

Imports: the source, the past.
"""
