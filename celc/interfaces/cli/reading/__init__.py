"""Events for the command line: files and standard input as batches of Arrow.

`origins` finds the files, `events` reads one of them (Parquet, CSV, JSON lines), and `stream` makes
one stream of several. The neighbours say where a row or a time is wrong.
"""
