"""What celc is set beside: small implementations of what others do, with counts of their work.

`by_hand`: the loops that a user would write for one pattern. `runs`: the automata with runs of
SASE. `postponed`: those of SASE++, which share one run for each first event. `merged`: the automata
of many rules with the indexes of Cayuga. `tests/benchmarks/test_baselines.py` compares the last
three with the reference.
"""
