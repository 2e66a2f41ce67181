"""Core formula → LP-normal form.

In: `core.Query`. Out: `normal_form.NormalForm`: conditions and labels stand at single events; only
conditions across events stay where they are written. `normalize` is the entry, and `rewrite` moves
conditions and labels. `conditions/` turns conditions on whole matches into facts of single events,
or bounds. `divide` gives an automaton its part of the form: for conditions across events `flatten`
makes roles of the events that they compare (`flat_form`), or `relax` leaves them out. `traversal`
walks forms, `constructors` simplify them, `show` prints them. Imports `core` and below.
"""
