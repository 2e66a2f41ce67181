"""The typed formula that every later stage starts from, and questions about its conditions.

`formula` is the representation: names are resolved, expressions typed, conditions in conjunctive
normal form. `fold` decides constant conditions as Spark SQL does. `like` turns LIKE into a regular
expression. `traversal` walks formulas and conditions. `terms` collects the labels that conditions
name. `bits` holds sets of small numbers. Imports `parse` (operators of the language) and
`diagnostics`.
"""
