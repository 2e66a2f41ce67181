"""Labels as the first paper reads them, for `--first-order`: core formulas → core formulas.

*Foundations of Complex Event Processing* gives a variable one position, by a valuation that both
sides of a `;` share and that each round of a `+` chooses anew. Labels of the language are sets.

In: resolved queries. Out: queries whose labels mean, as sets, the positions of the paper. `reader`
is the way in: `bounds` knows which labels a formula binds, `checks` refuses formulas beyond the
paper, `rewriting` makes the others safe. Only labels other than event types are concerned.
"""
