"""A compiled MATCH_RECOGNIZE in words: its conditions, its automaton, and how it is run."""

from collections.abc import Iterator

from celc.core.verdict import Verdict, counted, listed
from celc.row_pattern.compiler import RowCompilation


def verdict_of(compilation: RowCompilation) -> Verdict:
    """What the query is and costs, in five lines."""
    query, made = compilation.program.query, compilation.program
    states = counted(len(made.automaton.states), "state")
    on_path = _conditions_on_the_match(compilation)
    kind = "each condition is about one row and rows at a fixed distance (PREV, NEXT)"
    decided = f"decided by an automaton of {states}"
    if on_path:
        kind = f"the conditions of {listed(on_path)} read the match so far"
        decided = f"found by a search that follows an automaton of {states}"
    row = f"{counted(len(made.local), 'condition')} on it"
    if not on_path:
        moves = sum(len(state.moves) for state in made.automaton.states)
        row += " and 1 look-up" if query.within is None else f" and {counted(moves, 'comparison')}"
    keys = ", ".join(query.columns[number].name for number in query.partition_by)
    memory = f"all rows of a partition (one {keys} at a time)" if keys else "all rows of the table"
    each = 4 if query.within is None or on_path else 4 * len(made.automaton.states)
    advice = []
    if on_path:
        advice.append("PREV and NEXT in place of the match so far, where they mean the same")
        if query.within is None:
            advice.append("WITHIN in place of a condition on the time since the first row")
    if not query.partition_by:
        advice.append(
            "PARTITION BY, if all rows of a match share a value: each partition is held whole"
        )
    return Verdict(
        f"{kind}; {decided}",
        row,
        _match_cost(compilation, searches=bool(on_path)),
        f"{memory}: the columns that are read and {each} bytes a row",
        "; ".join(advice) or "nothing that celc knows of",
        of_rows=True,
    )


def _conditions_on_the_match(compilation: RowCompilation) -> list[str]:
    """The variables whose conditions read what the match has taken before."""
    made = compilation.program
    moves = (move for state in made.automaton.states for move in state.moves)
    numbers = {
        move.variable
        for move in moves
        if move.condition >= 0 and made.conditions[move.condition].path is not None
    }
    return [compilation.query.variables[number] for number in sorted(numbers)]


def _match_cost(compilation: RowCompilation, *, searches: bool) -> str:
    made = compilation.program
    if not searches:
        return "no search: 1 look-up for each of its rows"
    if any(made.live) or not made.remembers:
        return (
            "a search from each row where a match may begin: its steps can double with each row, "
            f"and {compilation.max_work:,} steps stop it with an error"
        )
    states = len(made.automaton.states)
    return (
        f"a search from each row where a match may begin: up to {counted(states, 'step')} for each "
        "row that follows"
    )


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
