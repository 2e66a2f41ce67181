"""Arrow in and out: the only code that knows both columns and kernels' arrays.

In: events in any form that users have. Out: checked arrays for the kernels, and matches as record
batches. `event_tables`, `pandas_frames` and `untyped` take tables, `sorting` orders them, `columns`
checks and prepares batches, `event_store` keeps the past events that the output shows, `output` and
`values` make columns of matches, `compact` makes rows of graphs, and `expanding` makes matches of
these. Imports `engine`, `plan` and below.
"""
