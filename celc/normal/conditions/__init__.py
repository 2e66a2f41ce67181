"""Conditions on whole matches that an automaton, or a few numbers, can decide."""
