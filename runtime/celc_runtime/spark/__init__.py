"""Batch on Spark: `match`, SQL, and what finds the cheapest plan.

In: a `Program` and a DataFrame. Out: a DataFrame. `match` chooses the plan; `time_ranges`,
`hot_keys` and `range_reader` cut a stream; `pushdown` leaves out rows; `probe` asks Spark what it
knows; `sql` registers table functions; `progress` tells how far it is. Imports `run` and below.
"""
