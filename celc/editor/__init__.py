"""What editors ask for: layout, completion, hover, renaming, colours, and a language server.

In: the text of a `.cel` file or of a query with MATCH_RECOGNIZE, and an offset in it. Out: values
such as `Completion`. Only `server` knows the protocol of editors, and only `pygments_lexer`
imports Pygments. `languages` is the table of all that is asked of a language. Imports `pipeline`,
`row_pattern` and the folders below.
"""
