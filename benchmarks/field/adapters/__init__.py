"""An adapter for each engine: it loads a data set, and answers tasks in the engine's own
language."""
