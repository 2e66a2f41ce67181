"""States that pass their matches on at the next event → states that last for one event.

In `A : (B ; C):+ ; D` a match that has taken C goes on with a B at once, or with a D at any later
time. The automaton has a state for the moment after C. It *passes* its matches on to a state for
the time after. Here such a match is in two states from the beginning: in the state that waits, and
in a state that any event loses. The second keeps only the moves that the first lacks. The two never
make the same move, so no match is found twice. The automaton is no longer deterministic, but a
match still has one run.
"""

from dataclasses import replace

from celc.automata.determinize import DetState
from celc.diagnostics.deadline import look
from celc.plan.tables import Step, Tables


def with_passing_states_apart(tables: Tables) -> Tables:
    """The same matches, where a state that passes its matches on loses them instead.

    A state stays as it is where the state after it has moves that it lacks, or loses matches at
    events at which it keeps them.
    """
    passes = {
        DetState(state): waits
        for state in range(1, tables.states)
        if (waits := _waiting_state(tables, DetState(state))) is not None
    }
    if not passes:
        return tables
    steps = []
    for row in tables.steps:
        look()
        sources: dict[tuple[int, DetState | None], dict[DetState, None]] = {}
        for step in row:
            made = (step.kind, step.target)
            known = {
                s for other in row if (other.kind, other.target) == made for s in other.sources
            }
            left = [source for source in step.sources if passes.get(source) not in known]
            targets = [step.target]
            if step.target in passes:
                targets.append(passes[step.target])
            for target in targets:
                sources.setdefault((step.kind, target), {}).update(dict.fromkeys(left))
        order = sorted(sources, key=lambda key: (key[1] is None, key[1] or 0))
        steps.append(
            tuple(
                Step(kind, tuple(sorted(sources[kind, target])), target)
                for kind, target in order
                if sources[kind, target]
            )
        )
    lost: tuple[DetState | None, ...] = (None,) * tables.symbols
    skip = tuple(lost if state in passes else row for state, row in enumerate(tables.skip))
    return replace(tables, steps=tuple(steps), skip=skip)


def _waiting_state(tables: Tables, state: DetState) -> DetState | None:
    """The state to which a state passes its matches on; None where the two cannot be separated."""
    look()
    waits = tables.skip[state][0]
    if waits in (None, state) or tables.skip[waits] != tables.skip[state]:
        return None
    for row in tables.steps:
        made = {(step.kind, step.target) for step in row if waits in step.sources}
        if not made <= {(step.kind, step.target) for step in row if state in step.sources}:
            return None
    return waits
