"""Text that the grammar refuses: which mistake it is, and what to write instead.

In: a `Place` (the token that does not fit, what could stand there, and the tokens around). Out: one
`Diagnostic`. `unexpected` chooses among the modules for clauses, conditions, formulas, words of
other languages and single tokens. Advice is read off tokens, for a tree does not exist yet.
"""
