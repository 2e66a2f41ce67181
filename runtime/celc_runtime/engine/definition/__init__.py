"""Matches by the definitions of the language, for queries that no faster way can run.

Imports: nothing of the other rooms.
"""
