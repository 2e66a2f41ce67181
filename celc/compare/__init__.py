"""What a change of a query changes: a proof that two queries have the same answers, or the shortest
stream on which they differ.

`shortest` decides, `product` compares automata, and `search` tries streams over a small domain of
events (`events`, `times`). No difference is told before both queries have been run on it (`sides`).
"""

from celc.compare.results import Bound, Difference, Equal, Unknown
from celc.compare.shortest import shortest_difference

__all__ = ["Bound", "Difference", "Equal", "Unknown", "shortest_difference"]
