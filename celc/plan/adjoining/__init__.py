"""Matches of neighbouring events, which are found without an arena: which queries have them
(`runs`), and the ways that their events go (`spots`)."""
