"""The events of a run: as they come in, their positions in their partitions, and what waits.

Imports: nothing of the other rooms.
"""
