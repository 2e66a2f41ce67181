"""Straight-line updates: the piles of partial matches, their bounds, and the shape of matches."""
