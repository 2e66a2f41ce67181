"""The events of a run: as they come in, where each stands in its partition, and what waits.

Imports: nothing of the other rooms.
"""
