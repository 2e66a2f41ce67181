"""Pages of HTML: matches over their events, and the automaton of a query.

In: matches and events as Arrow columns, or `pipeline.Stages`. Out: one file of HTML that needs no
network. Imports `explain`, `codegen` (the templates), and the runtime, whose order and positions
of events the pages show.
"""
