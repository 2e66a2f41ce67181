"""Where the rows are that conditions read: at a constant distance, at the start, or on the path.

Take the condition of B with `A.x` in it. In `A B` and in `A+ B`, `A.x` is a value of the row
before, as with PREV. In `A C+ B` it is one of the first row of the match. In `(A | C)+ B` it
depends on the path, and only a search can decide the condition. So a condition is resolved anew for
each state that it leads to, and each part of an AND by itself. There are three kinds of results:

- *local*: reads only rows at constant distances from the row at hand;
- reads also the start of the match;
- reads the path.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import Constant
from celc.core.traversal import truth_with_terms, with_terms
from celc.row_pattern import core as rows
from celc.row_pattern.automaton import Automaton, depths_of
from celc.row_pattern.necessary import Parts, bounded, is_local, required

Distance: TypeAlias = int | Literal["none", "several"]
"""How many rows a row is before the row at hand: a constant; "none": there is no such row;
"several": it depends on the path."""


@frozen
class Condition:
    """The condition of a move on its row, in two parts. Either may be missing."""

    local: core.Truth | None
    """Reads only rows at constant distances."""
    path: core.Truth | None
    """Reads the match so far."""


@frozen
class Conditions:
    """All conditions, each once."""

    all: tuple[Condition, ...]
    of_state: tuple[int, ...]
    """For each state, the place in `all` of the condition of the moves into it; −1: none."""
    within: int | None
    """The WITHIN of the query, or a shorter one that the conditions imply, in microseconds."""
    required: tuple[core.Truth, ...]
    """Conditions on one row, each of which holds for some row of every match."""


def conditions(query: rows.Query, made: Automaton, *, distances: bool = True) -> Conditions:
    """The conditions of a query, resolved for the states of its automaton.

    Without `distances`, rows of variables stay those of the path: each round of `A{100}` has its
    own distance from the first A, and so its own condition on a row.
    """
    variable = _variables_of_states(made)
    finder = _Finder(made, variable)
    resolved: list[Parts | None] = []
    for state, own in enumerate(variable):
        condition = None if own is None else query.conditions[own]
        if own is None or condition is None:
            resolved.append(None)
            continue
        resolution = _Resolution(query, finder, state, own, distances=distances)
        found = truth_with_terms(condition, resolution.expression)
        resolved.append(found.parts if isinstance(found, core.Every) else (found,))
    within, kept = bounded(query, made, finder.first(None), resolved)
    numbers: dict[Condition, int] = {}
    of_state = []
    for parts in kept:
        divided = _divided(parts or ())
        if divided == Condition(None, None):
            of_state.append(-1)
        else:
            of_state.append(numbers.setdefault(divided, len(numbers)))
    return Conditions(tuple(numbers), tuple(of_state), within, required(made, kept))


def _variables_of_states(made: Automaton) -> list[int | None]:
    found: list[int | None] = [None] * len(made.states)
    for state in made.states:
        for move in state.moves:
            found[move.target] = move.variable
    return found


# --- distances ------------------------------------------------------------------------------------


class _Finder:
    """Distances by state, found once for each set of variables."""

    def __init__(self, made: Automaton, variable: list[int | None]) -> None:
        self._made = made
        self._variable = variable
        self._known: dict[tuple[str, core.Variables | None], list[Distance | None]] = {}
        self.least = depths_of(made)

    def last(self, variables: core.Variables) -> list[Distance | None]:
        """How far back the last row of `variables` is; 0: it is the row at hand."""

        def step(state: int, before: Distance) -> Distance:
            if self._variable[state] in variables:
                return 0
            return before + 1 if isinstance(before, int) else before

        return self._flow("last", variables, step)

    def first(self, variables: core.Variables | None) -> list[Distance | None]:
        """How far back the first row of `variables` is. For None, the first row of the match."""

        def step(state: int, before: Distance) -> Distance:
            if before == "none":
                fits = variables is None or self._variable[state] in variables
                return 0 if fits else "none"
            return before + 1 if isinstance(before, int) else before

        return self._flow("first", variables, step)

    def place(self, variables: core.Variables, *, first: bool) -> list[Distance | None]:
        """How far from the start of the match the first or last row of `variables` is."""
        depth = self.first(None)

        def step(state: int, before: Distance) -> Distance:
            if self._variable[state] not in variables or (first and before != "none"):
                return before
            own = depth[state]
            assert own is not None
            return own

        return self._flow("first place" if first else "last place", variables, step)

    def _flow(
        self, kind: str, variables: core.Variables | None, step: Callable[[int, Distance], Distance]
    ) -> list[Distance | None]:
        key = (kind, variables)
        if key not in self._known:
            found: list[Distance | None] = [None] * len(self._made.states)
            found[self._made.first] = found[self._made.start] = "none"
            waiting = [self._made.first, self._made.start]
            while waiting:
                state = waiting.pop()
                before = found[state]
                assert before is not None
                for move in self._made.states[state].moves:
                    reached = step(move.target, before)
                    known = found[move.target]
                    met = reached if known in (None, reached) else "several"
                    if met != known:
                        found[move.target] = met
                        waiting.append(move.target)
            self._known[key] = found
        return self._known[key]


# --- conditions -----------------------------------------------------------------------------------


class _Resolution:
    """The condition of a variable where it takes the row of a state."""

    def __init__(
        self, query: rows.Query, finder: _Finder, state: int, variable: int, *, distances: bool
    ) -> None:
        self._query = query
        self._finder = finder
        self._state = state
        self._variable = variable
        self._distances = distances

    def expression(self, node: core.Expression) -> core.Expression:
        """The expression with the rows that are known."""
        match node:
            case core.ColumnAt() | core.Existing():
                row = self._row(node.row)
                if row is None:
                    return Constant(None, node.type, node.span)
                found = replace(node, row=row)
                return found if isinstance(found, core.ColumnAt) else self._terms(found)
            case core.LabelAt():
                return self._label(node)
            case core.AggregateOfRows():
                # Its argument reads rows of its own.
                return node
            case _:
                return self._terms(node)

    def _terms(self, node: core.Expression) -> core.Expression:
        return with_terms(node, self.expression)

    def _row(self, row: core.Row) -> core.Row | None:
        """The row as far as it is known here; None: there is none."""
        if not isinstance(row, core.Navigation):
            return row
        if row.variables is None and not row.first:
            if self._finder.least[self._state] >= row.offset:
                return core.Here(row.shift - row.offset)
            depth = self._finder.first(None)[self._state]
            if isinstance(depth, int) and depth < row.offset:
                return None
            return row
        if row.variables is None:
            depth = self._finder.first(None)[self._state]
            if not isinstance(depth, int) or not self._distances:
                return row
            if row.offset > depth:
                return None
            return core.Here(row.offset - depth + row.shift)
        if row.offset or not self._distances:
            return row
        finder = self._finder
        found = (finder.first if row.first else finder.last)(row.variables)[self._state]
        if found == "none":
            return None
        if isinstance(found, int):
            return core.Here(row.shift - found)
        place = finder.place(row.variables, first=row.first)[self._state]
        if isinstance(place, int):
            return core.Navigation(None, True, place, row.shift, False)
        return row

    def _label(self, node: core.LabelAt) -> core.Expression:
        row = node.row
        if not isinstance(row, core.Navigation):
            return node
        found = self._row(row)
        if found is None or (isinstance(found, core.Here) and found.shift > 0):
            return Constant(None, node.type, node.span)
        if isinstance(found, core.Here):
            if found.shift == 0:
                return Constant(self._query.variables[self._variable], node.type, node.span)
            if row.shift == 0 and row.variables is not None and len(row.variables) == 1:
                (only,) = row.variables
                return Constant(self._query.variables[only], node.type, node.span)
        return node


def _divided(parts: Parts) -> Condition:
    local = tuple(part for part in parts if is_local(part))
    path = tuple(part for part in parts if not is_local(part))
    return Condition(_all(local), _all(path))


def _all(parts: tuple[core.Truth, ...]) -> core.Truth | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else core.Every(parts, parts[0].span.to(parts[-1].span))
