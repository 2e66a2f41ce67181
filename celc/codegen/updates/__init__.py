"""Transition tables and straight-line updates → the update of a module."""
