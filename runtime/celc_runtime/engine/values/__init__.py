"""Values: Spark's arithmetic, times, numbers of two words, and functions of a label's events.

Imports: nothing of the other rooms.
"""
