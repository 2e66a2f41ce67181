"""How the matches below a last event are found, and which of them are chosen.

Imports: the arena, values.
"""
