"""Past events that conditions ask for: their values, the nearest with a key, the latest starts.

Imports: the source.
"""
