"""Syntax tree → core CEL: names, types and scopes. Most errors of a query are found here.

In: `syntax.File`. Out: a `core.Query` for each query, and warnings. The whole language is resolved;
a later stage refuses what it cannot compile. All problems of a file are reported at once: a part
with an error is left out, and errors that only follow from it are not reported. `resolver` is the
entry. `schema` knows the declarations, `labels` the labels of each part. `formulas` builds the core
formula, with the conditions and expressions of `types/`. `warnings/` finds what is allowed but
seldom meant. `first_order/` reads labels as single positions. Imports `core` and below.
"""
