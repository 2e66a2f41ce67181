"""Mutants: a query with one part changed, as the edits of its text.

Input: the syntax tree of a file. Output: `Mutant`s with their places. Imports: `near` for edits of
texts, `parse`, `diagnostics`.
"""
