"""Rules of FlinkCEP in their JSON format, with conditions of Aviator.

`grammar.lark` is the syntax of the conditions, whose rules are called as those of EQL's, so that
`eql.conditions` translates them. `patterns` finds the formula, `rules` makes a file of CEL.
"""
