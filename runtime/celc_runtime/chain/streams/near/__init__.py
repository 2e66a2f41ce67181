"""Near misses on Structured Streaming: one more unit of the operator that runs the query.

`reading` shows the events to the room of streams, and says how long they are needed; `bucket` finds
the near misses of the starts that no later event can change; `query` is what a module has.
"""
