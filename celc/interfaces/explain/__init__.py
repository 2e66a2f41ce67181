"""The stages of a compilation as text and graphs, for `celc explain` and golden files.

In: `pipeline.Stages`. Out: text, or a graph in Graphviz's language. Imports `pipeline` and below.
"""
