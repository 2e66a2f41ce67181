"""What the past says of absent events: the latest start before each event, and the nearest event.

Imports: the arena.
"""
