"""Conditions on events → symbol classes: all that an automaton needs to know of an event.

A query does not distinguish two events that satisfy the same conditions. A *symbol* is a class of
such events: a minterm (a truth for each condition) over the conditions that can apply to one event
type, never over those of all types. Minterms that no event can have are dropped. Comparisons of one
attribute with constants cut its values into finitely many pieces, so their possible combinations
are found exactly. Conditions of any other shape count as independent. This can leave a class
without events, which does no harm.

Symbol 0 is always the class of events that no atom of the query asks for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field

from celc_runtime.plan.frozen import frozen

from celc.core.formula import EventType
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.source import Source, Span
from celc.normal.conditions.truths import possible_truths
from celc.normal.normal_form import EventClause, NormalForm
from celc.normal.traversal import events_of


@frozen
class TypeConditions:
    """The conditions of the atoms of one event type, in order of appearance.

    A *group* is a set of clauses that atoms ask for only together. They are one condition, because
    it never matters which of them fails. `groups[k]` are the clauses of group k.
    """

    type: EventType
    groups: tuple[tuple[EventClause, ...], ...]

    def bits(self, some: Sequence[EventClause]) -> int:
        """Some of the clauses, in whole groups, as a bit set: bit k is group k."""
        wanted = set(some)
        return sum(1 << k for k, group in enumerate(self.groups) if wanted.issuperset(group))


@frozen
class Symbol:
    """A class of events: those of `type` that satisfy exactly the groups in `truth`."""

    type: EventType | None  # None: the class of all other events
    truth: int  # bit k: group k of the type's `TypeConditions`


@frozen
class Alphabet:
    """All symbols of a query; `symbols[0]` is the class of events that match no atom."""

    types: tuple[TypeConditions, ...]
    symbols: tuple[Symbol, ...]
    # By stream and name, because each event of a formula looks up its type.
    _conditions: dict[tuple[str, str], TypeConditions] = field(
        init=False, repr=False, compare=False
    )
    _numbers: dict[tuple[str, str], list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        conditions = {(t.type.stream, t.type.name): t for t in self.types}
        numbers: dict[tuple[str, str], list[int]] = {key: [] for key in conditions}
        for number, symbol in enumerate(self.symbols):
            if symbol.type is not None:
                numbers[symbol.type.stream, symbol.type.name].append(number)
        object.__setattr__(self, "_conditions", conditions)
        object.__setattr__(self, "_numbers", numbers)

    def conditions_on(self, event_type: EventType) -> TypeConditions:
        """The conditions of the query on events of one of its types."""
        return self._conditions[event_type.stream, event_type.name]

    def numbered(self, event_type: EventType) -> tuple[tuple[int, Symbol], ...]:
        numbers = self._numbers[event_type.stream, event_type.name]
        return tuple((number, self.symbols[number]) for number in numbers)

    def matching(self, event_type: EventType, clauses: Sequence[EventClause]) -> tuple[int, ...]:
        """The symbols whose events are of the type and satisfy all of the clauses."""
        needed = self.conditions_on(event_type).bits(clauses)
        return tuple(
            number
            for number, symbol in self.numbered(event_type)
            if symbol.truth & needed == needed
        )


# conditions on one event type; the kernel keeps their truths in the bits of a number
_MAX_GROUPS = 60


def symbol_classes(
    form: NormalForm,
    facts: Iterable[tuple[EventType, EventClause]],
    source: Source,
    span: Span,
    *,
    max_symbols: int = 4000,
) -> Alphabet:
    """The alphabet of a formula in LP-normal form, and of more conditions on events in `facts`.

    Raises CelError where one event type has too many conditions, or some type has more than
    `max_symbols` possible combinations.
    """
    needs: dict[EventType, dict[tuple[EventClause, ...], None]] = {}
    for event in events_of(form):
        look(event.span)
        needs.setdefault(event.type, {}).setdefault(event.clauses)
    asked = {event_type: list(found) for event_type, found in needs.items()}
    for event_type, clause in facts:
        asked[event_type].append((clause,))
    types = tuple(TypeConditions(t, _groups(found)) for t, found in asked.items())
    symbols = [Symbol(None, 0)]
    for conditions in types:
        truths = None
        if len(conditions.groups) <= _MAX_GROUPS:
            truths = possible_truths(conditions.groups, limit=max_symbols)
        if truths is None:
            raise CelError(source, (_too_many_classes(conditions, span, max_symbols),))
        wanted = [conditions.bits(need) for need in needs[conditions.type]]
        symbols.extend(
            Symbol(conditions.type, truth)
            for truth in sorted(truths)
            if any(truth & need == need for need in wanted)
        )
    return Alphabet(types, tuple(symbols))


def _too_many_classes(conditions: TypeConditions, span: Span, max_symbols: int) -> Diagnostic:
    """The error at the first condition beyond the limit, or at `span` where that condition has no
    place."""
    count = len(conditions.groups)
    asked = f"the {count} different conditions on events of type '{conditions.type.name}'"
    if count > _MAX_GROUPS:
        first, problem = _MAX_GROUPS, f"{asked} are more than the limit of {_MAX_GROUPS}"
        help_ = (
            "use fewer conditions on this type (IN for several values of one attribute is one "
            "condition), or split the query"
        )
    else:
        first = next(
            k
            for k in range(count)
            if possible_truths(conditions.groups[: k + 1], limit=max_symbols) is None
        )
        problem = f"{asked} can hold in more than {max_symbols:,} combinations"
        help_ = (
            "conditions on different attributes double the combinations, comparisons of one "
            "attribute with constants only add to them: use fewer of the former, or split the query"
        )
    predicates = conditions.groups[first][0].predicates
    place = predicates[0].span if predicates else span
    return error("too-many-classes", place, problem, help_)


def _groups(asked: Sequence[tuple[EventClause, ...]]) -> tuple[tuple[EventClause, ...], ...]:
    """The clauses, grouped by the lists in which they stand."""
    places: dict[EventClause, list[int]] = {}
    for number, clauses in enumerate(asked):
        for clause in clauses:
            places.setdefault(clause, []).append(number)
    groups: dict[tuple[int, ...], list[EventClause]] = {}
    for clause, found in places.items():
        groups.setdefault(tuple(found), []).append(clause)
    return tuple(map(tuple, groups.values()))
