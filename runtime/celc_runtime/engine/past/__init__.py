"""The past that absent events are looked for in: the latest starts, and the nearest events.

Imports: the arena.
"""
