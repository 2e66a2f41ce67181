"""The catalogue of what can be wrong with the meaning of a query, one function for each message.

The modules follow the matter: names, types of expressions, clauses of a query, and warnings. Each
function returns a `Diagnostic` with its own stable code; none decides whether it applies. What is
wrong with the text as such is said by the parser.
"""
