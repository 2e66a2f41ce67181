"""Text → syntax tree.

In: a `Source`. Out: `syntax.File`, faithful to the text, each node with its span. `parser` is the
way in: `tokens` cuts the text, `tables` takes `grammar.lark` apart, `machine` runs the tables,
`queries` and `formulas` build the tree. `mistakes/` explains a text that is not in the grammar.
Imports `diagnostics` only.
"""
