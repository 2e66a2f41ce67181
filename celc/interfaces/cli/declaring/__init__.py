"""Declarations that are read off tables: files and tables in, the text of CREATE STREAM out.

`samples` takes the first rows of files, and `tables` those of a table of a library. `texts` and
`objects` find the types that values without types show, and `shape` finds event types and an order.
`text` writes the declaration, and `files` is `celc init`. `schemas` has the columns of files for
queries that declare none.
"""
