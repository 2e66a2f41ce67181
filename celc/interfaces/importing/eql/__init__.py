"""EQL, the language of sequences of Elasticsearch, as its documents define it.

`grammar.lark` is its syntax. `conditions` translates what stands behind `where`,
`patterns` finds the formula of a sequence, and `rules` makes a file of CEL.
"""
