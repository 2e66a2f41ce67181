"""The figures and tables of the papers, made again: a folder for each paper, a script for each.

`run.py` runs them; docs/figures.md shows what came out, and which cannot be made.
"""
