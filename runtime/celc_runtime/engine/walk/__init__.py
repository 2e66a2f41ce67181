"""How the matches below a last event are found, and how some of them are chosen.

Imports: the arena, values.
"""
