"""Statements and words of other languages, and what CEL has instead."""
