"""Automata → how the query is run.

In: a minimal I/O-deterministic automaton, and the roles of conditions across events. Out:
`Program`, which has transition tables and one `Strategy`. `tables` makes the tables. `strategy`
alone chooses how updates run and how matches are listed, and says why. `straight_line/`, `keys` and
`earliest` find the possible choices. Imports `automata` and below.
"""
