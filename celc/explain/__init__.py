"""The stages of a compilation as text and as graphs, for `celc explain` and for golden files.

In: `pipeline.Stages`. Out: text, or a graph in the language of Graphviz. Imports `pipeline` and
below.
"""
