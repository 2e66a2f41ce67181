"""Many queries in one pass over the events.

In: the programs of the queries of a module, and events. Out: the answer of each query. Queries that
read their events in one order share the reading, and each gets the rows that can matter to it.

May import `spark` and everything below it.
"""
