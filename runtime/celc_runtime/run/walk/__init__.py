"""How the matches that end at an event are found: a class for each way, behind one protocol.

Imports: the source, the past.
"""
