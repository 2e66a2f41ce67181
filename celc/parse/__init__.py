"""Text → syntax tree.

In: a `Source`. Out: `syntax.File`, faithful to the text, each node with its span. `parser` is the
entry: `tokens` cuts the text, `tables` reads what Lark made of `grammar.lark`, `stacks` runs these
tables for `machine`, `queries` and `formulas` build the tree. `mistakes/` explains text outside the
grammar. Imports `diagnostics` only.
"""
