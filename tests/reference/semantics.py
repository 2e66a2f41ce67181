"""The table of definitions: ⟦φ⟧ν as a set of complex events, by brute force.

A complex event is a triple (start, end, μ) with μ the set of its (label, position) pairs. The
environment ν gives each label the set of positions that a filter sees outside its own sub-formula.

⟦φ⟧*ν asks for matches whose own μ is part of the environment that they are taken in. They are
found by guessing: first every filter that would look at φ's own labels is left out (the labels are
UNKNOWN), which gives a superset of the matches; then each value that the looked-at labels have in
that superset is tried as the environment, and the matches that agree with it are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import nodes as n
from .conditions import ConditionChecker, Positions, Row, labels_in
from .lasting import Axis, no_axis
from .values import CelError, Kind
from .windows import fits as fits_positions

Labelling = frozenset[tuple[str, int]]
ComplexEvent = tuple[int, int, Labelling]
Matches = frozenset[ComplexEvent]

# The positions of a label in an environment; None is UNKNOWN.
Environment = Mapping[str, Positions | None]

EMPTY: Environment = {}


class WorkLimitError(Exception):
    """The answer takes more steps than the caller allowed; it says nothing about the query."""


def positions_of(mu: Labelling, labels: Iterable[str]) -> dict[str, Positions]:
    """μ(x), ascending, of each of these labels x."""
    found: dict[str, list[int]] = {label: [] for label in labels}
    for label, position in mu:
        if label in found:
            found[label].append(position)
    return {label: tuple(sorted(places)) for label, places in found.items()}


def overridden(
    nu: Environment, mu: Labelling, labels: n.Labels, wanted: n.Labels
) -> dict[str, Positions | None]:
    """ν[μ], for a μ of a formula with these labels, on the wanted labels only."""
    seen: dict[str, Positions | None] = dict(positions_of(mu, wanted & labels))
    for label in wanted - labels:
        seen[label] = nu.get(label, ())
    return seen


def with_left(nu: Environment, mu: Labelling, labels: n.Labels) -> Environment:
    """ν with the positions of a match that is to the left."""
    if not labels:
        return nu
    more: dict[str, Positions | None] = {}
    for label, places in positions_of(mu, labels).items():
        earlier = nu.get(n.left_of(label), ())
        more[n.left_of(label)] = None if earlier is None else earlier + places
    return {**nu, **more}


def one_position(formula: n.Formula) -> n.Labels:
    """The labels that a match of the formula binds to one position at most."""
    return frozenset(label for label, most in _most(formula)[1].items() if most == 1)


def _most(formula: n.Formula) -> tuple[int, dict[str, int]]:
    """The greatest number of events with a label, and of positions of each label; 2: several."""
    match formula:
        case n.Atom():
            return 1, {formula.type: 1}
        case n.As():
            events, labels = _most(formula.body)
            return events, {**labels, formula.label: max(events, labels.get(formula.label, 0))}
        case n.Or():
            return _joined(_most(formula.left), _most(formula.right), max)
        case n.And():
            return _joined(_most(formula.left), _most(formula.right), max)
        case n.Then() | n.Next() | n.All() | n.NotBetween():
            return _joined(_most(formula.left), _most(formula.right), _added)
        case n.First():
            found, one = _most(formula.left), _most(formula.body)
            for _ in range(2 if formula.most is None else min(formula.most, 2)):
                found = _joined(found, one, _added)
            return found
        case n.Repeat():
            found = one = _most(formula.body)
            return found if formula.most == 1 else _joined(one, one, _added)
        case n.Unless():
            return _most(formula.left)
        case n.Filter() | n.Within() | n.Selector() | n.NotBefore() | n.NotAfter():
            return _most(formula.body)
        case n.Project():
            _, labels = _most(formula.body)
            kept = {label: labels[label] for label in formula.labels}
            return min(2, sum(kept.values())), kept
        case n.Rename():
            events, labels = _most(formula.body)
            new = min(2, labels.get(formula.old, 0) + labels.get(formula.new, 0))
            kept = {label: most for label, most in labels.items() if label != formula.old}
            return events, {**kept, formula.new: new}
    return 0, {}


def _added(one: int, other: int) -> int:
    return min(2, one + other)


def _joined(
    one: tuple[int, dict[str, int]],
    other: tuple[int, dict[str, int]],
    join: Callable[[int, int], int],
) -> tuple[int, dict[str, int]]:
    labels = one[1].keys() | other[1].keys()
    return join(one[0], other[0]), {
        label: join(one[1].get(label, 0), other[1].get(label, 0)) for label in labels
    }


def support(mu: Labelling) -> frozenset[int]:
    """All positions that have a label."""
    return frozenset(position for _, position in mu)


def select(kind: str, matches: Iterable[ComplexEvent]) -> Matches:
    """The matches that a selector (STRICT, NXT, LAST or MAX) chooses among these."""
    by_end: dict[int, list[tuple[frozenset[int], ComplexEvent]]] = defaultdict(list)
    for match in matches:
        by_end[match[1]].append((support(match[2]), match))
    chosen: set[ComplexEvent] = set()
    for group in by_end.values():
        supports = {places for places, _ in group}
        kept = {places for places in supports if _is_chosen(kind, places, supports)}
        chosen.update(match for places, match in group if places in kept)
    return frozenset(chosen)


def select_per_start(
    longest: bool, disjoint: bool, matches: Iterable[ComplexEvent], *, together: bool = False
) -> Matches:
    """The matches that FIRST, or LONGEST, chooses among those with one start; with `disjoint` of
    these, by start, each that starts after the end of the last one kept. `together`: NXT does not
    choose among those with one start and one end."""
    by_start: dict[int, list[ComplexEvent]] = defaultdict(list)
    for match in matches:
        by_start[match[0]].append(match)
    kept: set[ComplexEvent] = set()
    last_end = -1
    for start, group in sorted(by_start.items()):
        ends = [end for _, end, _ in group]
        end = max(ends) if longest else min(ends)
        if disjoint and start <= last_end:
            continue
        last_end = end
        there = [match for match in group if match[1] == end]
        # All of them end there, so that NXT compares them with each other alone.
        kept |= frozenset(there) if together else select("NXT", there)
    return frozenset(kept)


def _is_chosen(kind: str, mine: frozenset[int], supports: set[frozenset[int]]) -> bool:
    if kind == "STRICT":
        # Nothing at all is an interval too.
        return not mine or max(mine) - min(mine) + 1 == len(mine)
    if kind == "MAX":
        return not any(mine < other for other in supports)
    deciding = min if kind == "NXT" else max
    return all(mine == other or deciding(mine ^ other) in mine for other in supports)


class Evaluator:
    """⟦φ⟧ over one stream: its rows from position `first` on, as if the stream began there.

    Windows inside a formula are measured on `order_by` where they name no attribute; `window` is
    that of the query, for absences at the end without FOR. `work_limit` bounds the number of
    complex events looked at; beyond it WorkLimitError is raised.

    `instants` are the first and the last position of the instant of each row. A match starts at the
    first position of its first instant and ends at the last one of its last; so one instant is
    before another exactly if a match that ends in it ends before one that starts in the other
    starts, and every line of the table reads the same with and without simultaneous events. Without
    `instants` each event is an instant of its own. With an `axis` events last, and starts and ends
    are places of it.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        kinds: Mapping[str, Kind],
        first: int = 0,
        work_limit: int | None = None,
        order_by: str | None = None,
        instants: Sequence[tuple[int, int]] | None = None,
        *,
        window: n.Window | None = None,
        axis: Axis | None = None,
    ) -> None:
        self.rows = rows
        self.first = first
        if instants is None:
            instants = [(i, i) for i in range(len(rows))]
        self.lasting = axis is not None
        self.axis = no_axis(instants) if axis is None else axis
        self.instants = self.axis.places
        self.checker = ConditionChecker(rows, kinds)
        self.work_left = work_limit
        self.order_by = order_by
        self.window = window
        self._memo: dict[tuple[n.Formula, tuple[object, ...]], Matches] = {}
        self._scopes: dict[tuple[n.Formula, tuple[object, ...]], Matches] = {}

    def answer(self, formula: n.Formula) -> Matches:
        """The answer of a whole formula: ⟦φ⟧*∅."""
        return self.scope(formula, EMPTY)

    def scope(self, formula: n.Formula, nu: Environment) -> Matches:
        """⟦φ⟧*ν = {(i, j, μ) ∈ ⟦φ⟧ν[μ]}."""
        looked_at = formula.outside & formula.labels
        seen = n.seen_to_the_left(formula.outside)
        if seen:
            inside = {
                n.left_of(label): () if label in formula.labels else nu.get(label, ())
                for label in seen
            }
            nu = {**nu, **inside}
        if not looked_at:
            return self.matches(formula, nu)
        key = (formula, tuple(nu.get(label, ()) for label in sorted(formula.scope_outside)))
        known = self._scopes.get(key)
        if known is None:
            known = self._scopes[key] = self._guess(formula, nu, looked_at)
        return known

    def _guess(self, formula: n.Formula, nu: Environment, looked_at: n.Labels) -> Matches:
        """⟦φ⟧*ν of a formula whose filters look at these labels of its own."""
        superset = self.matches(formula, {**nu, **dict.fromkeys(looked_at)})
        guesses: dict[tuple[tuple[str, Positions], ...], set[ComplexEvent]] = defaultdict(set)
        for match in superset:
            guesses[tuple(sorted(positions_of(match[2], looked_at).items()))].add(match)
        found: set[ComplexEvent] = set()
        for guess, candidates in guesses.items():
            found |= candidates & self.matches(formula, {**nu, **dict(guess)})
        return frozenset(found)

    def matches(self, formula: n.Formula, nu: Environment) -> Matches:
        """⟦φ⟧ν; where ν is UNKNOWN on a label, a superset for all that the label could be."""
        key = (formula, tuple(nu.get(label, ()) for label in sorted(formula.outside)))
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = frozenset(self._matches(formula, nu))
        return known

    def _matches(self, formula: n.Formula, nu: Environment) -> Iterable[ComplexEvent]:
        """One line of the table for each kind of formula."""
        match formula:
            case n.Atom():
                return self._atom(formula)
            case n.As():
                return self._labelled(formula, nu)
            case n.Then() | n.Next():
                return self._then(formula, nu)
            case n.First():
                return self._first(formula, nu)
            case n.Repeat():
                return self._repeat(formula, nu)
            case n.Or():
                return self.matches(formula.left, nu) | self.matches(formula.right, nu)
            case n.And():
                return self.matches(formula.left, nu) & self.matches(formula.right, nu)
            case n.All():
                return self._all(formula, nu)
            case n.Unless():
                return self._unless(formula, nu)
            case n.NotBetween():
                return self._not_between(formula, nu)
            case n.NotBefore():
                return self._not_before(formula, nu)
            case n.NotAfter():
                return self._not_after(formula, nu)
            case n.Filter():
                return self._filter(formula, nu)
            case n.Within():
                return self._within(formula, nu)
            case n.Project():
                return self._project(formula, nu)
            case n.Rename():
                return self._rename(formula, nu)
            case n.OtherEvent():
                return self._other_event(formula, nu)
            case n.Selector():
                matches = self.scope(formula.body, nu)
                # What is chosen from a superset need not be a superset of what is chosen.
                return matches if self._unknown(formula, nu) else select(formula.kind, matches)
        raise CelError(f"no definition for {formula}")

    def _spend(self, steps: int) -> None:
        if self.work_left is not None:
            self.work_left -= steps
            if self.work_left < 0:
                raise WorkLimitError

    @staticmethod
    def _unknown(formula: n.Formula, nu: Environment) -> bool:
        return any(nu.get(label, ()) is None for label in formula.outside)

    def _atom(self, atom: n.Atom) -> Iterable[ComplexEvent]:
        for i in range(self.first, len(self.rows)):
            row = self.rows[i]
            is_meant = row.type == atom.type and atom.stream in (None, row.stream)
            if is_meant and self._is_valid(row, atom.times):
                yield *self.instants[i], frozenset([(atom.type, i)])

    def _is_valid(self, row: Row, times: tuple[Any, Any] | None) -> bool:
        """Whether an event is from since on and before until, None where there is no bound."""
        if times is None:
            return True
        assert self.order_by is not None
        datum, (since, until) = row.values.get(self.order_by), times
        if datum is None or datum.value is None:
            return False
        return (since is None or since <= datum.value) and (until is None or datum.value < until)

    def _labelled(self, formula: n.As, nu: Environment) -> Iterable[ComplexEvent]:
        for i, j, mu in self.matches(formula.body, nu):
            yield i, j, mu | {(formula.label, position) for position in support(mu)}

    def _pairs(
        self,
        left: n.Formula,
        right: n.Formula,
        nu: Environment,
        contiguous: bool,
        gap: bool = False,
    ) -> Iterable[tuple[ComplexEvent, ComplexEvent]]:
        """The pairs of matches, (i, k, μ1) and (l, j, μ2), with k < l, or l = k + 1; with `gap` one
        position may be between."""
        found: dict[tuple[object, ...], dict[int, list[ComplexEvent]]] = {}
        seen = n.seen_to_the_left(right.outside)
        for first in self.matches(left, nu):
            k = first[1]
            there = with_left(nu, first[2], seen)
            key = tuple(there.get(n.left_of(label), ()) for label in sorted(seen))
            if key not in found:
                by_start: dict[int, list[ComplexEvent]] = defaultdict(list)
                for match in self.matches(right, there):
                    by_start[match[0]].append(match)
                found[key] = by_start
            for start, group in found[key].items():
                is_next = start == k + 1 or (gap and start == k + 2)
                if is_next or (start > k and (self.lasting or not contiguous)):
                    self._spend(1 + len(group))
                    for second in group:
                        if not (self.lasting and contiguous) or self._is_next(k, second[1]):
                            yield first, second

    def _is_next(self, end: int, other: int) -> bool:
        """Whether a match that ends at the place `other` is the next after `end`, for events that
        last."""
        return self.axis.is_next(end, other, [one for _, one in self.instants])

    def _then(self, formula: n.Then | n.Next, nu: Environment) -> Iterable[ComplexEvent]:
        contiguous = isinstance(formula, n.Next)
        sides = formula.left, formula.right
        gap = isinstance(formula, n.Next) and formula.gap
        for (i, _, mu1), (_, j, mu2) in self._pairs(*sides, nu, contiguous, gap):
            yield i, j, mu1 | mu2

    def _first(self, formula: n.First, nu: Environment) -> Iterable[ComplexEvent]:
        """Chains: the match of the left side, then in each round one that `FIRST ψ` gives. Where ν'
        is UNKNOWN to ψ, all of its matches are; then no χ is looked for."""
        single = one_position(formula.body)
        names = formula.body.scope_outside
        absent = formula.absent
        if absent is not None:
            names |= absent.scope_outside - formula.body.labels
        seen = n.plain(names) | n.seen_before(names)
        # (i, k, μ), and the end of the left side and the start of the first round.
        chains = {(*match, match[1], -1) for match in self.matches(formula.left, nu)}
        rounds = 0
        while chains and (formula.most is None or rounds < formula.most):
            rounds += 1
            longer = set()
            for i, k, mu, gap, first in chains:
                left = with_left(nu, mu, seen)
                there: dict[str, Positions | None] = {
                    label: left.get(n.left_of(label), ()) for label in n.plain(names)
                }
                for label in n.seen_before(names):
                    mine, earlier = left.get(n.left_of(label), ()), nu.get(n.before(label), ())
                    known = None if mine is None or earlier is None else earlier + mine
                    there[n.before(label)] = known if label in single else ()
                matches = [one for one in self.scope(formula.body, there) if one[0] > k]
                self._spend(1 + len(matches))
                if matches and None not in there.values():
                    end = min(j for _, j, _ in matches)
                    matches = [one for one in matches if one[1] == end]
                    if absent is not None:
                        labels = formula.body.labels
                        matches = [
                            one
                            for one in matches
                            if not self._stands_between(absent, there, one[2], labels, k, one[0])
                        ]
                longer |= {
                    (i, j, mu | mu2, gap, start if rounds == 1 else first)
                    for start, j, mu2 in matches
                }
            chains = longer
            if rounds >= formula.least:
                for i, k, mu, gap, first in chains:
                    if formula.gap is None or not self._stands_between(
                        formula.gap, nu, mu, formula.labels, gap, first
                    ):
                        yield i, k, mu

    def _stands_between(
        self, formula: n.Formula, nu: Environment, mu: Labelling, labels: n.Labels, k: int, el: int
    ) -> bool:
        """Whether what must be absent has a match strictly between the places k and l."""
        absent = self._absent(formula, nu, mu, labels)
        self._spend(len(absent))
        return any(k < start and end < el for start, end, _ in absent)

    def _next_rounds(self, formula: n.Repeat, nu: Environment) -> Iterable[ComplexEvent]:
        """`:+` among events that last, where each round ends next after the one before."""
        rounds = self.scope(formula.body, nu)
        chains = set(rounds)
        for number in range(1, len(self.rows) + 1 if formula.most is None else formula.most + 1):
            if number >= formula.least:
                yield from chains
            self._spend(1 + len(chains) * len(rounds))
            chains = {
                (i, j, mu | mu2)
                for i, k, mu in chains
                for start, j, mu2 in rounds
                if start > k and self._is_next(k, j)
            }
            if not chains:
                return

    def _repeat(self, formula: n.Repeat, nu: Environment) -> Iterable[ComplexEvent]:
        if self.lasting and formula.contiguous:
            yield from self._next_rounds(formula, nu)
            return
        links: dict[int, list[ComplexEvent]] = defaultdict(list)
        for match in self.scope(formula.body, nu):
            links[match[0]].append(match)
        # The chains of so many rounds that begin at each position: a match, and a chain of one
        # round less that begins after the match's end.
        most = len(self.rows) if formula.most is None else min(formula.most, len(self.rows))
        chains = {i: set(group) for i, group in links.items()}
        for rounds in range(1, most + 1):
            if rounds >= formula.least:
                for group in chains.values():
                    yield from group
            longer: dict[int, set[ComplexEvent]] = defaultdict(set)
            for i, group in links.items():
                for _, k, mu1 in group:
                    for start, following in chains.items():
                        if start == k + 1 or (start > k and not formula.contiguous):
                            self._spend(1 + len(following))
                            longer[i].update((i, j, mu1 | mu2) for _, j, mu2 in following)
            chains = longer
            if not any(chains.values()):
                return

    def _all(self, formula: n.All, nu: Environment) -> Iterable[ComplexEvent]:
        left, right = self.matches(formula.left, nu), self.matches(formula.right, nu)
        self._spend(len(left) * len(right))
        for i1, j1, mu1 in left:
            for i2, j2, mu2 in right:
                yield *self.axis.union((i1, j1), (i2, j2)), mu1 | mu2

    def _absent(
        self, formula: n.Formula, nu: Environment, mu: Labelling, labels: n.Labels
    ) -> Matches:
        """⟦φ2⟧*ν[μ], what must not occur; none of it where ν[μ] is UNKNOWN to it."""
        inner = overridden(nu, mu, labels, formula.scope_outside)
        if None in inner.values():
            return frozenset()
        return self.scope(formula, inner)

    def _other_event(self, formula: n.OtherEvent, nu: Environment) -> Iterable[ComplexEvent]:
        matches = frozenset() if self._unknown(formula, nu) else self.scope(formula.body, nu)
        one_event = {start for start, end, _ in matches if start == end}
        taken = {i for i in one_event if not self.lasting and self.instants[i] == (i, i)}
        taken |= {min(support(mu)) for _, _, mu in matches if len(support(mu)) == 1}
        for i in range(self.first, len(self.rows)):
            if i not in taken:
                yield *self.instants[i], frozenset()

    def _unless(self, formula: n.Unless, nu: Environment) -> Iterable[ComplexEvent]:
        for i, j, mu in self.matches(formula.left, nu):
            absent = self._absent(formula.right, nu, mu, formula.labels)
            self._spend(len(absent))
            if not any(self.axis.is_inside((start, end), (i, j)) for start, end, _ in absent):
                yield i, j, mu

    def _not_between(self, formula: n.NotBetween, nu: Environment) -> Iterable[ComplexEvent]:
        for (i, k, mu1), (el, j, mu3) in self._pairs(formula.left, formula.right, nu, False):
            mu = mu1 | mu3
            if not self._stands_between(formula.absent, nu, mu, formula.labels, k, el):
                yield i, j, mu

    def _not_before(self, formula: n.NotBefore, nu: Environment) -> Iterable[ComplexEvent]:
        for i, j, mu in self.matches(formula.body, nu):
            absent = self._absent(formula.absent, nu, mu, formula.labels)
            self._spend(len(absent))
            # Where events last, both bounds are between the end of what is absent and the start.
            if not any(
                end < i and self._fits(formula.window, end if self.lasting else start, i)
                for start, end, _ in absent
            ):
                yield i, j, mu

    def _not_after(self, formula: n.NotAfter, nu: Environment) -> Iterable[ComplexEvent]:
        length = formula.window or self.window
        if length is None:
            raise CelError("an absence at the end needs FOR, or a window of the query")
        for i, j, mu in self.matches(formula.body, nu):
            absent = self._absent(formula.absent, nu, mu, formula.labels)
            self._spend(len(absent))
            begin = i if formula.window is None else j
            if not any(start > j and self._fits(length, begin, end) for start, end, _ in absent):
                yield i, j, mu

    def _filter(self, formula: n.Filter, nu: Environment) -> Iterable[ComplexEvent]:
        wanted = n.mentioned(formula.condition)
        for i, j, mu in self.matches(formula.body, nu):
            seen = overridden(nu, mu, formula.labels, wanted)
            for label in n.seen_before(formula.outside):
                seen[n.before(label)] = nu.get(n.before(label), ())
            known = {label: places for label, places in seen.items() if places is not None}
            if all(
                self.checker.holds(clause, known)
                for clause in formula.clauses
                if labels_in(clause) <= known.keys()
            ):
                yield i, j, mu

    def _within(self, formula: n.Within, nu: Environment) -> Iterable[ComplexEvent]:
        for match in self.matches(formula.body, nu):
            if self.fits(formula.window, match):
                yield match

    def fits(self, window: n.Window, match: ComplexEvent) -> bool:
        """Whether a match is inside a window."""
        return self._fits(window, match[0], match[1])

    def _fits(self, window: n.Window, begin: int, end: int) -> bool:
        if self.lasting:
            return bool(self.axis.span(begin, end) <= window.size)
        return fits_positions(window, self.order_by, self.rows, begin, end)

    def _project(self, formula: n.Project, nu: Environment) -> Iterable[ComplexEvent]:
        for i, j, mu in self.scope(formula.body, nu):
            yield i, j, projected(mu, formula.labels)

    def _rename(self, formula: n.Rename, nu: Environment) -> Iterable[ComplexEvent]:
        for i, j, mu in self.scope(formula.body, nu):
            renamed = frozenset(
                (formula.new if label == formula.old else label, position) for label, position in mu
            )
            yield i, j, renamed


def projected(mu: Labelling, labels: Iterable[str]) -> Labelling:
    """μ with every label outside `labels` emptied."""
    kept = frozenset(labels)
    return frozenset(pair for pair in mu if pair[0] in kept)
