"""The events of a run: where each stands in its partition, and what waits until it is read.

Imports: nothing of the other rooms.
"""
