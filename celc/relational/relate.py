"""A resolved query → its relations.

A match of the formula is a choice of one event for each atom. So a label stands for a fixed tuple
of scans, and a condition that must hold for every choice of positions is written out for each
choice of scans. Conditions see the labels of their own operand first, then those of the scopes
around it. A condition with unknown labels waits until its scope ends.

OR, and rounds of several numbers, give several *branches*: relations of their own, whose matches
are those of the query together. The formula is read once for each.

Long: a case for each kind of formula, and they share the scopes around them.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from celc.core import formula as core
from celc.core.formula import Clause, Expression, Formula, Predicate, Query
from celc.core.terms import distances_looked_back, labels_of_clause, nodes_named_in
from celc.core.traversal import Leaf, labels_bound, map_expression, map_leaves
from celc.diagnostics.source import Span
from celc.normal.firsts import as_absence
from celc.relational.functions_of_scans import aggregated
from celc.relational.relations import (
    Before,
    Condition,
    Missing,
    NotRelational,
    Reach,
    Relations,
    Scan,
    Within,
)
from celc.relational.ways import Ways

MOST_EVENTS = 6  # events of a match; each is one more join
MOST_BRANCHES = 16  # each is one more SELECT

_NAMES_TAKEN = ("events", "order_check", "clock", "part_ends")


@dataclass
class _Waiting:
    """A clause with labels that are still unknown, and the list that its conditions go to."""

    clause: Clause
    known: dict[str, tuple[str, ...]]
    target: list[Condition]


@dataclass
class _Part:
    """A part of the formula: the scans of each label, those that can be first and last, and the
    clauses that wait for labels around it."""

    labels: dict[str, tuple[str, ...]]
    scans: tuple[str, ...]
    firsts: tuple[str, ...]
    lasts: tuple[str, ...]
    waiting: list[_Waiting] = field(default_factory=list)


@dataclass
class _Absent:
    """A `Missing` whose conditions are still being collected."""

    scan: Scan
    after: tuple[str, ...]
    before: tuple[str, ...]
    inclusive: bool
    conditions: list[Condition] = field(default_factory=list)
    reach: Reach | None = None

    def missing(self) -> Missing:
        bounds = self.after, self.before, self.inclusive
        return Missing(self.scan, *bounds, tuple(self.conditions), self.reach)


def relate(query: Query) -> tuple[Relations, ...]:
    """The relations of a query, one for each branch. Raises NotRelational where it has none."""
    _check_clauses(query)
    ways, taken, found = Ways(), {*_NAMES_TAKEN}, []
    while True:
        found.append(_Builder(query, ways, taken).relations())
        if not ways.advance():
            return tuple(found)
        if len(found) == MOST_BRANCHES:
            what = f"OR, `?` and `{{m,n}}` give more than {MOST_BRANCHES} branches"
            raise NotRelational(what, query.formula.span)


def _check_clauses(query: Query) -> None:
    """Raises NotRelational for a clause of the query that chooses, forgets or counts."""
    place = query.strategy_span or query.span
    if query.total is not None:
        raise NotRelational("SELECT TOTAL counts matches", query.total.span)
    if query.collapsed:
        raise NotRelational("SELECT COLLAPSED unites matches", place)
    if query.per_start is not None:
        raise NotRelational(f"SELECT {query.per_start} chooses among matches", query.per_start.span)
    if query.strategy != "ALL":
        raise NotRelational(f"SELECT {query.strategy} chooses among matches", place)
    if query.consume_by != "NONE":
        raise NotRelational("CONSUME BY makes a match depend on earlier ones", query.span)
    if query.limit is not None:
        raise NotRelational("LIMIT chooses among matches", query.span)
    if query.rate is not None:
        raise NotRelational("LIMIT … PER counts the rows before a row", query.rate.span)
    if query.parameters is not None:
        raise NotRelational("FOR EACH reads a table of parameters", query.span)
    if query.reads:
        raise NotRelational("it reads the rows of another query", query.span)
    if query.lasting:
        raise NotRelational("its events last", query.span)
    if query.uncertain is not None:
        raise NotRelational("the time of its events is uncertain", query.span)
    if query.simultaneous:
        raise NotRelational("its events can be simultaneous", query.span)


class _Builder:
    """Collects the relations of one branch of a query."""

    def __init__(self, query: Query, ways: Ways, taken: set[str]) -> None:
        self._query = query
        self._ways = ways
        self._scans: dict[str, Scan] = {}
        self._before: list[Before] = []
        self._within: list[Within] = []
        self._conditions: list[Condition] = []
        self._absent: list[_Absent] = []
        self._deadline: Reach | None = None
        self._numbers: dict[str, int] = {}
        self._taken = taken  # names of scans, of all branches
        self._in_order = True

    def relations(self) -> Relations:
        """The relations of the query's formula."""
        query = self._query
        part = self._scope(query.formula, ())
        assert not part.waiting, "a label of a condition is bound nowhere"
        if query.window is not None:
            self._fit(part, query.window)
        self._check_output(part)
        return self._with_own_conditions(
            Relations(
                query,
                tuple(self._scans[name] for name in part.scans),
                tuple(dict.fromkeys(self._before)),
                tuple(dict.fromkeys(self._within)),
                tuple(dict.fromkeys(self._conditions)),
                tuple(one.missing() for one in self._absent),
                part.firsts,
                part.lasts,
                part.labels,
                self._in_order,
                self._deadline,
            )
        )

    # --- formulas ---------------------------------------------------------------------------------

    def _scope(self, formula: Formula, names: tuple[str, ...]) -> _Part:
        """A part whose conditions see its own labels before those around it."""
        part = self._part(formula, names)
        part.waiting = self._resolved(part.waiting, part.labels, labels_bound(formula))
        return part

    # Long: a case for each kind of formula.
    def _part(self, formula: Formula, names: tuple[str, ...]) -> _Part:
        """A part of the formula; `names` are the labels around it, the innermost first."""
        match formula:
            case core.Atom():
                return self._atom(formula, names)
            case core.As(operand=operand, label=label):
                part = self._part(operand, (*names, label))
                return replace(part, labels=self._joined(part.labels, {label: part.scans}))
            case core.Rename(operand=operand, old=old, new=new):
                part = self._scope(operand, names)
                labels = {name: scans for name, scans in part.labels.items() if name != old}
                return replace(part, labels=self._joined(labels, {new: part.labels.get(old, ())}))
            case core.Project(operand=operand, labels=kept):
                part = self._scope(operand, names)
                return replace(part, labels={n: s for n, s in part.labels.items() if n in kept})
            case core.Sequence(operands=operands, contiguous=contiguous):
                parts = [self._part(operand, names) for operand in operands]
                return self._sequence(parts, contiguous)
            case core.Iteration():
                return self._rounds(formula, names)
            case core.All(left=left, right=right):
                self._in_order = False
                one, other = self._part(left, names), self._part(right, names)
                return self._united(
                    [one, other], one.firsts + other.firsts, one.lasts + other.lasts
                )
            case core.Absence(left=left, middle=middle, right=right):
                one, other = self._part(left, names), self._part(right, names)
                part = self._sequence([one, other], (False,))
                part.waiting += self._missing(middle, one.lasts, other.firsts)
                return part
            case core.Unless(left=left, right=right):
                part = self._part(left, names)
                part.waiting += self._missing(right, part.firsts, part.lasts, inclusive=True)
                return part
            case core.Filter(operand=operand, clauses=clauses):
                part = self._part(operand, names)
                waiting = [_Waiting(clause, {}, self._conditions) for clause in clauses]
                part.waiting += self._resolved(waiting, part.labels, labels_bound(operand))
                return part
            case core.Within(operand=operand, window=window):
                part = self._part(operand, names)
                self._fit(part, window)
                return part
            case core.ThenFirst():
                same = as_absence(formula)
                if same is None:
                    raise NotRelational("FIRST chooses among several events", formula.span)
                return self._part(same, names)
            case core.Disjunction(operands=()):
                raise NotRelational("it has no match", formula.span)
            case core.Disjunction(operands=operands):
                return self._part(operands[self._ways.choose(len(operands))], names)
            case core.Conjunction():
                raise NotRelational("AND compares whole matches", formula.span)
            case core.Selector():
                raise NotRelational("a selector chooses among matches", formula.span)
            case core.AbsenceBefore(operand=operand, absent=absent, length=length):
                part, reach = self._part(operand, names), self._reach(length)
                part.waiting += self._missing(absent, (), part.firsts, reach=reach)
                return part
            case core.AbsenceAfter(operand=operand, absent=absent, length=length):
                part = self._part(operand, names)
                self._deadline = self._reach(length, from_start=formula.from_start)
                part.waiting += self._missing(absent, part.lasts, (), reach=self._deadline)
                return part
            case _:
                assert_never(formula)

    def _atom(self, atom: core.Atom, names: tuple[str, ...]) -> _Part:
        if len(self._scans) == MOST_EVENTS:
            raise NotRelational(f"a match has more than {MOST_EVENTS} events", atom.span)
        name = self._name(names[-1] if names else atom.label)
        self._scans[name] = Scan(name, atom.types)
        self._numbers[name] = len(self._numbers)
        return _Part({atom.label: (name,)}, (name,), (name,), (name,))

    def _name(self, wanted: str) -> str:
        """An unused name for a scan. SQL ignores upper and lower case."""
        for number in itertools.count(1):
            name = wanted if number == 1 else f"{wanted}_{number}"
            if name.lower() not in self._taken:
                self._taken.add(name.lower())
                return name
        raise AssertionError

    def _sequence(self, parts: list[_Part], contiguous: Iterable[bool]) -> _Part:
        for (one, other), adjacent in zip(itertools.pairwise(parts), contiguous, strict=True):
            if adjacent and len(one.lasts) * len(other.firsts) > 1:
                raise NotRelational("`:` beside ALL asks for the later one of two events", self._at)
            self._before += [
                Before(last, first, adjacent) for last in one.lasts for first in other.firsts
            ]
        return self._united(parts, parts[0].firsts, parts[-1].lasts)

    @property
    def _at(self) -> Span:
        return self._query.formula.span

    def _united(self, parts: list[_Part], firsts: tuple[str, ...], lasts: tuple[str, ...]) -> _Part:
        labels: dict[str, tuple[str, ...]] = {}
        for part in parts:
            labels = self._joined(labels, part.labels)
        scans = tuple(name for part in parts for name in part.scans)
        return _Part(labels, scans, firsts, lasts, [one for part in parts for one in part.waiting])

    def _rounds(self, formula: core.Iteration, names: tuple[str, ...]) -> _Part:
        if formula.most is None:
            what = "`+` and `{m,}` have matches of any number of events"
            raise NotRelational(what, formula.span)
        if formula.most > MOST_EVENTS:
            raise NotRelational(f"a match has more than {MOST_EVENTS} events", formula.span)
        least, most = formula.least, formula.most
        count = least + (self._ways.choose(most - least + 1) if most > least else 0)
        rounds = [self._scope(formula.operand, names) for _ in range(count)]
        return self._sequence(rounds, [formula.contiguous] * (len(rounds) - 1))

    def _missing(
        self,
        formula: Formula,
        after: tuple[str, ...],
        before: tuple[str, ...],
        *,
        inclusive: bool = False,
        reach: Reach | None = None,
    ) -> list[_Waiting]:
        """Adds the absence of an event, or of one of several; the clauses in it that wait for
        labels around it."""
        outer_ways, waiting = self._ways, []
        self._ways = ways = Ways()
        while True:
            scan, conditions, left = self._missing_way(formula)
            self._absent.append(_Absent(scan, after, before, inclusive, conditions, reach))
            waiting += left
            if not ways.advance():
                break
        self._ways = outer_ways
        return waiting

    def _missing_way(self, formula: Formula) -> tuple[Scan, list[Condition], list[_Waiting]]:
        """The event that must be absent, the list of its conditions, and the clauses that wait."""
        outer = self._scans, self._conditions, self._absent, self._in_order
        self._scans, self._conditions, self._absent = {}, [], []
        part = self._scope(formula, ())
        found, conditions, absent = self._scans, self._conditions, self._absent
        self._scans, self._conditions, self._absent, self._in_order = outer
        if len(found) > 1:
            raise NotRelational("what is absent has several events", formula.span)
        if absent:
            raise NotRelational("an absence stands inside another", formula.span)
        return found[part.scans[0]], conditions, part.waiting

    def _fit(self, part: _Part, window: core.Window) -> None:
        """Adds that a part fits a window."""
        self._check_measured(window)
        of_positions, size = window.unit is core.WindowUnit.EVENTS, math.floor(window.size)
        self._within += [
            Within(first, last, size, of_positions)
            for first in part.firsts
            for last in part.lasts
            if first != last
        ]

    def _reach(self, length: core.Window, *, from_start: bool = False) -> Reach:
        """The length of an absence at an end."""
        self._check_measured(length)
        counts = length.unit is core.WindowUnit.EVENTS
        return Reach(math.floor(length.size), counts, from_start)

    def _check_measured(self, window: core.Window) -> None:
        """Raises NotRelational for a window that is not measured in whole numbers of the order."""
        query = self._query
        measured = window.attribute or (query.order_by[0] if query.order_by else None)
        of_positions = window.unit is core.WindowUnit.EVENTS
        if not of_positions and measured is not None:
            if query.order_by and measured.name != query.order_by[0].name:
                raise NotRelational(
                    f"a window is measured on {measured.name!r}, which is not the first order "
                    "column",
                    window.span,
                )
            if measured.type in (core.DataType.FLOAT, core.DataType.DOUBLE):
                raise NotRelational(
                    f"a window is measured on {measured.name!r}, whose values are floating numbers",
                    window.span,
                )

    def _joined(
        self, one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]
    ) -> dict[str, tuple[str, ...]]:
        """The scans of each label of two parts, in the order of the text."""
        return {
            label: tuple(
                sorted({*one.get(label, ()), *other.get(label, ())}, key=self._numbers.__getitem__)
            )
            for label in dict.fromkeys((*one, *other))
        }

    # --- conditions -------------------------------------------------------------------------------

    def _resolved(
        self,
        waiting: list[_Waiting],
        labels: Mapping[str, tuple[str, ...]],
        bound: frozenset[str],
    ) -> list[_Waiting]:
        """Gives labels their scans, writes out the clauses that know all, and returns the rest."""
        left = []
        for one in waiting:
            known = dict(one.known)
            for label in labels_of_clause(one.clause) - known.keys():
                if label in bound:
                    known[label] = labels.get(label, ())
            one = replace(one, known=known)
            if labels_of_clause(one.clause) <= known.keys():
                one.target.extend(self._written_out(one.clause, known))
            else:
                left.append(one)
        return left

    def _written_out(self, clause: Clause, known: Mapping[str, tuple[str, ...]]) -> list[Condition]:
        """The clause for each choice of a scan for each of its labels."""
        found = []
        for scans in itertools.product(*(known[label] for label in clause.labels)):
            chosen = dict(zip(clause.labels, scans, strict=True))
            predicates = [self._chosen(one, chosen, known) for one in clause.predicates]
            if None not in predicates:
                found.append(tuple(one for one in predicates if one is not None))
        return found

    def _chosen(
        self,
        predicate: Predicate,
        chosen: Mapping[str, str],
        known: Mapping[str, tuple[str, ...]],
    ) -> Predicate | None:
        """A predicate of chosen events; None: there is no event before one of them, so it counts as
        TRUE."""
        if isinstance(predicate, core.Quantified):
            raise NotRelational("SOME and EVERY ask for several events at once", predicate.span)
        for label, distance in distances_looked_back(predicate).items():
            self._check_order(known[label], predicate.span)
            if known[label].index(chosen[label]) < distance:
                return None
        return map_leaves(predicate, lambda leaf: self._of_scans(leaf, chosen, known))

    def _check_order(self, scans: tuple[str, ...], span: Span) -> None:
        if len(scans) > 1 and not self._in_order:
            raise NotRelational("a function asks for the order of events joined by ALL", span)

    def _of_scans(
        self,
        leaf: Leaf,
        chosen: Mapping[str, str],
        known: Mapping[str, tuple[str, ...]],
    ) -> Expression:
        """The value of an attribute or a function, with scans instead of labels."""
        match leaf:
            case core.AttributeValue():
                return replace(leaf, label=chosen[leaf.label])
            case core.Previous(label=label, attribute=attribute, distance=distance):
                scan = known[label][known[label].index(chosen[label]) - distance]
                return core.AttributeValue(scan, attribute, leaf.type, leaf.span)
            case core.Aggregate():
                scans = known.get(leaf.label, ())
                self._check_order(scans, leaf.span)
                if leaf.prior:
                    scans = scans[: scans.index(chosen[leaf.label])]
                return aggregated(leaf, scans)

    def _check_output(self, part: _Part) -> None:
        """Raises NotRelational for an item that has no expression over the scans."""
        for item in self._query.output:
            if isinstance(item, core.OutputExpression) and not isinstance(
                item.value, core.Collection
            ):
                map_expression(item.value, lambda leaf: self.output_leaf(leaf, part.labels))
            if isinstance(item, core.OutputExpression) and isinstance(item.value, core.Collection):
                self._check_order(part.labels.get(item.value.label, ()), item.span)

    def output_leaf(self, leaf: Leaf, labels: Mapping[str, tuple[str, ...]]) -> Expression:
        """The value of an attribute or a function in SELECT."""
        scans = labels.get(leaf.label, ())
        if isinstance(leaf, core.AttributeValue) and len(scans) != 1:
            raise NotRelational(f"{leaf.label} has several events", leaf.span)
        return self._of_scans(leaf, {leaf.label: scans[0]} if scans else {}, labels)

    def _with_own_conditions(self, relations: Relations) -> Relations:
        """The same with conditions on one event at its scan."""
        own: dict[str, list[Condition]] = {scan.name: [] for scan in relations.scans}
        rest = []
        for condition in relations.conditions:
            names = scans_of(condition)
            if len(names) == 1:
                own[min(names)].append(condition)
            else:
                rest.append(condition)
        scans = tuple(replace(s, conditions=tuple(own[s.name])) for s in relations.scans)
        missing = tuple(map(_with_own, relations.missing))
        return replace(relations, scans=scans, conditions=tuple(rest), missing=missing)


def _with_own(missing: Missing) -> Missing:
    own = tuple(one for one in missing.conditions if scans_of(one) == {missing.scan.name})
    rest = tuple(one for one in missing.conditions if one not in own)
    return replace(missing, scan=replace(missing.scan, conditions=own), conditions=rest)


def scans_of(condition: Condition) -> frozenset[str]:
    """The scans whose events a condition compares."""
    return frozenset(
        node.label
        for predicate in condition
        for node in nodes_named_in(predicate)
        if isinstance(node, Leaf)
    )


def output_value(relations: Relations, value: Expression) -> Expression:
    """An expression of SELECT with scans instead of labels."""
    builder = _Builder(relations.query, Ways(), set())
    builder._in_order = relations.in_order
    return map_expression(value, lambda leaf: builder.output_leaf(leaf, relations.labels))
