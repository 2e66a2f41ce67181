"""Text that the grammar refuses: the likely mistake, and the text to write instead.

In: a `Place` (the token that does not fit, the tokens that would fit, and the tokens around). Out:
one `Diagnostic`. `unexpected` chooses among the modules for clauses, conditions, formulas and words
of other languages; their advice is read off tokens (`surroundings`), for no tree exists yet.
`tokens` has the messages about single tokens, `trees` those about trees that only the grammar
accepts.
"""
