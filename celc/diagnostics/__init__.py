"""Problems of a query: where they are in the text, how they are shown, and their words.

In: a source text, spans in it, and the facts of one problem. Out: `Diagnostic` and `CelError`.
`source` knows places, `errors` the shape of a message and how it is rendered, `messages/` the words
about names, types and clauses. `deadline` is the time limit of a compilation, whose end is one more
error. Imports nothing else of celc.
"""
