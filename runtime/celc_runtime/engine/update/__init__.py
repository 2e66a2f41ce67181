"""How an event changes the partial matches, in updates driven by tables.

Imports: the arena, and the walk that lists what an event ends.
"""
