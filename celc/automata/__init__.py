"""LP-normal form → the smallest I/O-deterministic complex event automaton.

In: a normal form. Out: an alphabet of disjoint symbols, and automata over it, each trimmed.
`predicates` finds the symbols, `construct` builds (with `graphs` for products, `select` for
selectors), `determinize` and `minimise` follow. Imports `normal` and below.
"""
