"""What is known of events that must be absent: the latest before each event, the nearest to it.

Imports: the arena.
"""
