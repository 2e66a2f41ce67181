"""Sigma's rules and correlations, which the library pySigma reads.

`conditions` translates the detection of a rule, `correlations` counts, values and orders of events,
and `rules` makes a file of CEL for each file of rules.
"""
