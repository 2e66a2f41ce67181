"""Batch on Spark: `match` with its plans, table functions of SQL, and progress.

In: a `Program` and a DataFrame. Out: a DataFrame. `match` is what users call. `facts` knows the
data, and `choose` makes a list of `steps` from them. `input/` reads columns and leaves out rows.
`time_ranges`, `group_cuts` and `hot_keys` cut a stream. `worker/` is the work of a task, and
`answers/` how its matches travel. `sql` registers table functions, `progress` shows how far a job
is. Imports `run` and below.
"""
