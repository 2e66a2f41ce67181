"""How an event changes the partial matches, where tables drive it.

Imports: the arena, and the walk that lists what an event ends.
"""
