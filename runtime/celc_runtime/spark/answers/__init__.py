"""How matches travel from the tasks to Spark: `wire` chooses, the others are forms of rows.

`compact` also turns compact answers into matches again.
"""
