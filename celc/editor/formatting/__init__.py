"""Text → the same text in the canonical layout.

`tokens` cuts a text into tokens with the comments around them. `chains` makes boxes of expressions.
`cel` and `row_patterns` know the clauses of the dialects, `statements` finds them in other SQL.
`documents` fits boxes into the width of a line. `text` does all of it and checks that only the
layout has changed.
"""
