"""Automata → how the query is run.

In: a minimal I/O-deterministic automaton, and the roles of conditions across events. Out:
`Program`: transition tables and one `Strategy`. `tables` tabulates; `strategy` is the only place
that chooses how updates run and how matches are listed, and says why. `piles`, `shapes`, `keys`
and `earliest` find out which choices there are; `passing` rewrites tables for `piles`. Imports
`automata` and below.
"""
