"""LP-normal form → the smallest I/O-deterministic complex event automaton.

In: a normal form. Out: an alphabet of disjoint symbols, and automata over it without useless
states. `predicates` finds the symbols, `construct` builds (with `graphs` for products, `select` for
selectors), then come `determinize` and `minimise`. Imports `normal` and below.
"""
