"""Near misses: a query with one part bent, as the texts of ordinary queries.

`parts` finds what can bend, `conditions` how comparisons do, and `texts` writes a file with a query
for each part, which the compiler reads like any other.
"""
