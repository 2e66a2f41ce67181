"""Conditions on whole matches that an automaton, or a few numbers, can decide.

`facts` makes facts of aggregates, `count_limits` refuses large numbers.
"""
