"""The arena of partial matches: its nodes, the batches that fill it, and tables from keys to piles.

Imports: nothing of the other rooms.
"""
