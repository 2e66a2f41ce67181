"""Several queries in one operator of a stream: queries over queries, and all queries of a module.

A bucket holds a *unit* for each of the queries, with its own events and its own state. The units
are run one after another, so that a query that reads others gets their rows as events in the same
micro-batch. See README.md.
"""
