"""What a query cannot do on a route, and why.

In: a query's program. Out: a reason in words, or None. `features` reads a program, `rules` is the
table, `why_not` answers from it. Every route asks it at its entry. Imports the program and the
plan.
"""
