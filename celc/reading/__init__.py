"""From text to syntax tree: tokens, tables, the parser's machine, the tree's builders, and errors.

`celc.parse` is the way in.
"""
