"""The half of a proof that reads code: from the automaton to tables, updates and listings.

In: `Representations`, and for the listing a function that runs the module. Out: verdicts
(`steps.py`). Generated code is read as it stands in the text of the module. What it does to piles
is turned back into a machine (`symbolic.py`), which must have the runs of the automaton
(`machines.py`). What the runtime lists is compared with paths of the automaton (`paths.py`).
"""
