"""Whole SQL statements that contain MATCH_RECOGNIZE.

A host reads SQL and does not know the clause: Spark, or DuckDB. `clauses` cuts the clauses out of a
statement by its words. `statement` lets the host read what stands before each clause, celc the
clause, and the host the statement around with a table in the place of each. `hosts` says what a
host does. No parser of SQL is used: the host's own reads all that is not ours, and the one that
sqlglot has keeps PATTERN as a text and refuses parts of the clause.
"""
