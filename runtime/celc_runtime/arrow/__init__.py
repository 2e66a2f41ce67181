"""Arrow in and out: the only code that knows both columns and kernels' arrays.

In: events in any form that users have. Out: checked arrays for the kernels, and matches as record
batches. The way in is `events/`: tables of any form are taken (`event_tables`), sorted (`sorting`),
checked and prepared batch by batch (`columns`). `event_store` keeps the past events that the output
shows. The way out is `matches/`: columns of matches (`output`, `values`), rows of graphs
(`compact`), and matches made of these (`expanding`). Imports `engine`, `plan` and below.
"""
