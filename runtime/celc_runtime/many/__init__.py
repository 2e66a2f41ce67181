"""Many queries in one pass over the events.

In: the programs of the queries of a module, and events. Out: the answer of each query. Queries that
read their events in the same order share the reading. Each gets the rows that can matter to it. May
import `spark` and everything below it.
"""
