"""Near misses: matches of a query with one part bent that share no event with its matches.

`query` runs the bent queries on a table and keeps the nearest match of each start. `measuring` says
how far each bends its part. `on_spark` runs them on Spark.
"""
