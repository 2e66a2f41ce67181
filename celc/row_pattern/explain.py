"""A compiled MATCH_RECOGNIZE in words: its conditions, its automaton, and how it is run."""

from collections.abc import Iterator

from celc.row_pattern.compiler import RowCompilation


def query_text(compilation: RowCompilation) -> str:
    """The variables with the kinds of their conditions, and how matches are found."""
    return "".join(f"{line}\n" for line in _query(compilation))


def _query(compilation: RowCompilation) -> Iterator[str]:
    query, made = compilation.query, compilation.program
    yield f"MATCH_RECOGNIZE {query.name}"
    kinds: dict[int, set[str]] = {}
    for state in made.automaton.states:
        for move in state.moves:
            condition = None if move.condition < 0 else made.conditions[move.condition]
            if condition is None:
                told = "any row"
            elif condition.path is None:
                told = "a condition on the row and rows at constant distances"
            elif condition.local is None:
                told = "a condition on the match so far"
            else:
                told = "a condition on the row, and one on the match so far"
            kinds.setdefault(move.variable, set()).add(told)
    for number, name in enumerate(query.variables):
        found = sorted(kinds.get(number, {"it cannot be reached"}))
        yield f"  {name}: {'; or '.join(found)}"
    yield f"  states: {len(made.automaton.states)}"
    yield f"  {how(compilation)}"


def how(compilation: RowCompilation) -> str:
    """How matches are found, in words."""
    made = compilation.program
    if any(condition.path is not None for condition in made.conditions):
        if any(made.live) or not made.remembers:
            return (
                "matches are found by a search that remembers the rows, states and what conditions "
                "can still read of the path that lead nowhere"
            )
        return "matches are found by a search of at most rows × states steps for a start"
    if compilation.query.within is not None:
        return "matches are found by two passes: the earliest end by row and state, then forwards"
    return "matches are found by two passes: states that can reach an end, then forwards"


def automaton_text(compilation: RowCompilation) -> str:
    """The states with their moves in order of preference."""
    return "".join(f"{line}\n" for line in _automaton(compilation))


def _automaton(compilation: RowCompilation) -> Iterator[str]:
    made, query = compilation.program.automaton, compilation.query
    yield f"{query.name}: {len(made.states)} states; moves in order of preference"
    for number, state in enumerate(made.states):
        begins = [
            told
            for told, one in (
                ("before the first row of a partition", made.first),
                ("before any other row", made.start),
            )
            if one == number
        ]
        ends = "may end" if state.accepts else "may end at the partition's end"
        told = [*begins, *([ends] if state.accepts or state.accepts_at_end else [])]
        yield f"  state {number}{': ' if told else ''}{', '.join(told)}"
        for move in state.moves:
            excluded = ", excluded" if move.excluded else ""
            yield f"    {query.variables[move.variable]} → state {move.target}{excluded}"
