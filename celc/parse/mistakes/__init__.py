"""Text outside the grammar: the likely mistake, and the text to write instead.

In: a `Place` (the unexpected token, the tokens that would fit, and the tokens around). Out: one
`Diagnostic`. `unexpected` chooses among the modules for clauses, conditions, formulas and words of
other languages. There is no tree yet, so their advice is read off tokens (`surroundings`). `tokens`
has the messages about single tokens, `trees` those about trees that only the grammar accepts.
"""
