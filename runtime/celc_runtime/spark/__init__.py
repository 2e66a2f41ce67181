"""Batch on Spark: `match` with its plans, table functions of SQL, and progress.

In: a `Program` and a DataFrame. Out: a DataFrame. `match` is what users call; `facts` are known of
the data, and `choose` makes a list of `steps` of them; `columns`, `key_columns` and `event_types`
read and check columns; `pushdown` leaves out rows; `time_ranges`, `group_cuts` and `hot_keys` cut a
stream; `tasks` is the work of a task, and `wire` how its matches travel; `probe` asks Spark about a
DataFrame; `sql` registers table functions; `compact` has compact answers and what becomes of them
again; `progress` shows how far a job is. Imports `run` and below.
"""
