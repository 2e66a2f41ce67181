"""Matches as the language defines them, for what no faster way carries.

Imports: nothing of the other rooms.
"""
