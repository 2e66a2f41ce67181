"""Near misses as data."""
