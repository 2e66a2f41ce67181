"""The catalogue of mistakes in the meaning of a query, one function for each message.

The modules follow the matter: names, types of expressions, clauses of a query, and warnings. Each
function returns a `Diagnostic` with its own stable code; none decides whether it applies. The
parser words the mistakes in the text as such (`parse/mistakes/`).
"""
