"""Past events that conditions read: their values, the nearest event with a key, the latest starts.

Imports: the source.
"""
