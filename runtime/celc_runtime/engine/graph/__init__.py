"""The matches that end at an event, as a graph: from the arena, with conditions, from a list."""
