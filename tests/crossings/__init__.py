"""Queries that cross three features of any areas of the language, on all routes.

`drafts` has the query that grows, `shapes`, `conditions` and `clauses` the features, each a name
and what it does to a draft, `events` the streams, `answers` the reference's rows and those of an
answer in one form, `routes` the ways to run a query, and `check` compares. `pairs` has queries in
which each two features come together. `tests/test_crossings.py` runs them.
"""
