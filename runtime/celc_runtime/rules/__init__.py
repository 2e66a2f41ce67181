"""Queries FOR EACH row of a parameter table.

In: a program with `parameters`, events, and the table. Out: the matches of all rows, each with its
row. An event is read once for each row that it can concern; an index of the rows finds these.
Imports `run` and what is below it.
"""
