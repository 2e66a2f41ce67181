"""The catalogue of mistakes in the meaning of a query, one function for each message.

The modules follow the matter: names, types of expressions, clauses of a query, and warnings. Each
function returns a `Diagnostic` with its own stable code; none decides whether it applies.
`parse/mistakes/` has the messages about the text itself.
"""
