"""Events and parts that must be absent → the lines of `admits` and `completes` that search for
them.

The remembered events are searched from an event of the match on. Where an equality ties the absent
event to an event of the match, only the events with that key are searched (`nearest_events`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import KeyTerm, NearestEvent

from celc.codegen.correlated.checks import CheckCode
from celc.codegen.text.escape import comment_text
from celc.core.formula import Expression, Window
from celc.core.show import show_predicate
from celc.normal import flat_form as flat
from celc.normal.normal_form import Event
from celc.normal.show import show_length, show_window
from celc.normal.traversal import events_of
from celc.plan.keys import absent_key, named_term
from celc.plan.program import Program
from celc.plan.tables import symbols_of


@frozen
class AbsentSymbols:
    """A constant of the module: for each symbol, whether its events must be absent."""

    name: str
    symbols: tuple[bool, ...]


@frozen
class _KeyOfAbsent:
    """The numbers of the look-ups that find an absent event."""

    role: str
    asked: int  # from an event with `role` to the first candidate
    next: int  # from a candidate to the next one


@dataclass(slots=True)
class AbsenceCode:
    """Writes the lines about what must be absent.

    `numbers` are those of the windows of the plan. `nearest` collects the look-ups of nearest
    events that the lines need, as constructor calls; `symbols` collects the events that must be
    absent.
    """

    checks: CheckCode
    program: Program
    numbers: Mapping[Window, int]
    nearest: dict[NearestEvent, int] = field(default_factory=dict)
    symbols: list[AbsentSymbols] = field(default_factory=list)

    def absent_part_lines(self, number: int, part: flat.AbsentPart) -> list[str]:
        """Lines that reject two events with a part in a window between them. The part begins after
        the first of them; with `inclusive`, not before it."""
        state = f"state[{self.checks.states}"
        self.checks.states += 1
        names = ", ".join(dict.fromkeys(event.name for event in events_of(part.form)))
        found = f"latest_{number}[closing - 1] > here + first"
        if part.inclusive:
            found = f"latest_{number}[closing] >= here + first"
        window = "" if part.window is None else f"{show_window(part.window)} of "
        return [
            f"# no {comment_text(window + names)}",
            f"closing = {state}, depth - 1] if depth > 0 else -1",
            f"if roles & {1 << self.checks.bit(part.last)}:",
            "    closing = here",
            f"if closing >= 0 and roles & {1 << self.checks.bit(part.first)}:",
            f"    if {found}:",
            "        return False",
            "    closing = -1",
            f"{state}, depth] = closing",
        ]

    def part_before_lines(self, number: int, part: flat.PartBefore) -> list[str]:
        """Lines that reject a first event with a part before it. `number` is that of the part's
        column."""
        names = ", ".join(dict.fromkeys(event.name for event in events_of(part.form)))
        return [
            f"# no {comment_text(names)} before, {comment_text(show_length(part.length))}",
            f"if roles & {1 << self.checks.bit(part.first)} and preceded_{number}[here]:",
            "    return False",
        ]

    def part_after_lines(self, number: int, part: flat.PartAfter) -> list[str]:
        """Lines that reject a last event with a part after it. `number` is that of the part's
        column. Where the length counts from the start, they reject a whole match."""
        length = self.numbers[part.length]
        names = ", ".join(dict.fromkeys(event.name for event in events_of(part.form)))
        comment = f"# no {comment_text(names)} after, {comment_text(show_length(part.length))}"
        if not part.from_start:
            passed = f"key_{length}[here] >= ceiling_{number}[here]"
            return [comment, f"if depth == 0 and {passed}:", "    return False"]
        start, end = (f"(path[{at}] >> {self.checks.kind_bits}) - first" for at in ("depth", "0"))
        return [
            f"{comment} from the start",
            f"if key_{length}[{start}] >= ceiling_{number}[{end}]:",
            "    return False",
        ]

    # Long: the lines of one loop, in their order.
    def absent_lines(self, absent: flat.AbsentEvent, part: int | None) -> list[str]:
        """Lines of `completes` that find an event which must be absent between two roles. With a
        part, `part` is the number of the part's column."""
        began = "" if part is None else f"started_{part}[between] > start + first"
        if absent.inclusive:
            began = began.replace(">", ">=")
        checks = self._absent_checks(absent.events, absent.clauses, began)
        first, last = (1 << self.checks.bit(role) for role in (absent.first, absent.last))
        key, after = self._key(absent, lambda role: self._can_precede(role, absent.first)), True
        if key is None and not absent.inclusive:
            key, after = (
                self._key(absent, lambda role: self._can_precede(absent.last, role), after=False),
                False,
            )
        events = absent.events if absent.part is None else tuple(events_of(absent.part.form))
        lines = [
            _no(events),
            "for place in range(depth, -1, -1):",
            f"    if not {self.checks.roles_at('place')} & {first}:",
            "        continue",
            f"    until = place{'' if absent.inclusive else ' - 1'}",
            f"    while not {self.checks.roles_at('until')} & {last}:",
            "        until -= 1",
            f"    start, end = {self._entry_at('place')}, {self._entry_at('until')}",
        ]
        if key is None:
            ends = ("start", "end + 1") if absent.inclusive else ("start + 1", "end")
            lines.append(f"    for between in range({', '.join(ends)}):")
            return [*lines, *(f"        {line}" for line in checks)]
        lines += [
            f"    {line}"
            for line in self._asker(key.role, after=after, edge="start" if after else "end")
        ]
        asked = f"nearest_{key.asked}[asker] - first if asker >= 0"
        following = f"nearest_{key.next}[between] - first if asker >= 0"
        if not after:
            return [
                *lines,
                f"    between = {asked} else end - 1",
                "    while between > start:",
                "        if between < end:",
                *(f"            {line}" for line in checks),
                f"        between = {following} else between - 1",
            ]
        if not absent.inclusive:
            return [
                *lines,
                f"    between = {asked} else start + 1",
                "    while between >= 0 and between < end:",
                "        if between > start:",
                *(f"            {line}" for line in checks),
                f"        between = {following} else between + 1",
            ]
        # The search by key begins after the event with the key, and both ends count as well.
        return [
            *lines,
            f"    behind = {asked} else start + 1",
            "    between = start",
            "    while True:",
            *(f"        {line}" for line in checks),
            "        if between == end:",
            "            break",
            "        if between > start:",
            f"            behind = {following} else between + 1",
            "        while behind >= 0 and behind <= start:",
            f"            behind = {following.replace('between', 'behind')} else behind + 1",
            "        between = end if behind < 0 or behind > end else behind",
        ]

    def first_lines(self, first: flat.FirstWithKey) -> list[str]:
        """Lines that reject an event which is not the first one with its key."""
        before = self._lookup(first.events, first.terms, first.terms, after=False, ever=True)
        key = ", ".join(named_term(term)[0] for term in first.terms)
        names = " or ".join(dict.fromkeys(event.name for event in first.events))
        return [
            f"# the first {comment_text(names)} with its {comment_text(key)}",
            f"if roles & {1 << self.checks.bit(first.role)} and nearest_{before}[here] >= 0:",
            "    return False",
        ]

    def event_before_lines(self, before: flat.EventBefore) -> list[str]:
        """Lines of `completes` that find an event which must be absent before a role."""
        checks = self._absent_checks(before.events, before.clauses)
        length = self.numbers[before.length]
        key = self._key(before, lambda role: self._can_precede(before.first, role), after=False)
        lines = [
            f"{_no(before.events)} before, {comment_text(show_length(before.length))}",
            "for place in range(depth, -1, -1):",
            f"    if not {self.checks.roles_at('place')} & {1 << self.checks.bit(before.first)}:",
            "        continue",
            f"    behind = {self._entry_at('place')}",
            "    least = max(0, begin[behind] - first)",
        ]
        too_early = [f"if key_{length}[between] < floor_{length}[behind]:", "    break"]
        if key is None:
            return [
                *lines,
                "    for between in range(behind - 1, least - 1, -1):",
                *(f"        {line}" for line in (*too_early, *checks)),
            ]
        asker = self._asker(key.role, after=False, edge="behind")
        return [
            *lines,
            *(f"    {line}" for line in asker),
            f"    between = nearest_{key.asked}[asker] - first if asker >= 0 else behind - 1",
            "    while between >= least:",
            *(f"        {line}" for line in too_early),
            "        if between < behind:",
            *(f"            {line}" for line in checks),
            f"        between = nearest_{key.next}[between] - first if asker >= 0 else between - 1",
        ]

    def event_after_lines(self, after: flat.EventAfter) -> list[str]:
        """Lines of `completes` that find an event which must be absent after a match."""
        checks = self._absent_checks(after.events, after.clauses)
        length, key = self.numbers[after.length], self._key(after, lambda _: True, after=True)
        lines = [
            f"{_no(after.events)} after, {comment_text(show_length(after.length))}",
            f"until = {self._entry_at('0')}",
            f"counted = key_{length}[{self._entry_at('depth' if after.from_start else '0')}]",
        ]
        too_late = [
            f"if counted < floor_{length}[between] or begin[between] != begin[until]:",
            "    break",
        ]
        if key is None:
            return [
                *lines,
                "for between in range(until + 1, len(symbol)):",
                *(f"    {line}" for line in (*too_late, *checks)),
            ]
        return [
            *lines,
            *self._asker(key.role, after=True, edge="until"),
            f"between = nearest_{key.asked}[asker] - first if asker >= 0 else until + 1",
            "while between >= 0 and between < len(symbol):",
            *(f"    {line}" for line in too_late),
            "    if between > until:",
            *(f"        {line}" for line in checks),
            f"    between = nearest_{key.next}[between] - first if asker >= 0 else between + 1",
        ]

    # --- events with a key ------------------------------------------------------------------------

    def _key(
        self,
        absent: flat.AbsentEvent | flat.EventBefore | flat.EventAfter,
        can_ask: Callable[[str], bool],
        *,
        after: bool = True,
    ) -> _KeyOfAbsent | None:
        """The look-ups that find an event which must be absent; None: it has no key."""
        key = absent_key(absent.clauses, can_ask)
        if key is None:
            return None
        asked = self._lookup(absent.events, key.absent, key.asking, after=after)
        following = self._lookup(absent.events, key.absent, key.absent, after=after)
        return _KeyOfAbsent(key.role, asked, following)

    def _can_precede(self, role: str, other: str) -> bool:
        """Whether an event of a role can be at or before one of another role in some match."""
        return other in self.checks.later.get(role, ())

    def _lookup(
        self,
        events: Sequence[Event],
        absent: Sequence[Expression],
        asking: Sequence[Expression],
        *,
        after: bool,
        ever: bool = False,
    ) -> int:
        """The number of the look-up of the nearest of some events by key. With `ever` it tells
        whether there was one."""
        found = NearestEvent(
            symbols_of(events, self.program.alphabet, self.program.tables),
            key=terms_of(absent),
            asking=terms_of(asking),
            after=after,
            ever=ever,
        )
        return self.nearest.setdefault(found, len(self.nearest))

    def _asker(self, role: str, *, after: bool, edge: str) -> list[str]:
        """Lines that find an event of a role, in the match, from which the search by key starts.

        It is the latest one up to an entry, or the earliest one from it on. −1: there is none, and
        no key to search with.
        """
        places, reaches = ("range(depth + 1)", "<=") if after else ("range(depth, -1, -1)", ">=")
        return [
            "asker = -1",
            f"for asked in {places}:",
            f"    if {self.checks.roles_at('asked')} & {1 << self.checks.bit(role)}:",
            f"        if {self._entry_at('asked')} {reaches} {edge}:",
            f"            asker = {self._entry_at('asked')}",
            "            break",
        ]

    def _entry_at(self, place: str) -> str:
        return f"(path[{place}] >> {self.checks.kind_bits}) - first"

    def _absent_checks(
        self, events: Sequence[Event], clauses: Sequence[flat.RoleClause], more: str = ""
    ) -> list[str]:
        """Lines that reject a match if `between` is one of some events, which must be absent.
        `more` must be true of it as well."""
        found = symbols_of(events, self.program.alphabet, self.program.tables)
        every = range(max(self.program.tables.symbol_of) + 1)
        name = f"ABSENT_{self.checks.choices.query}_{len(self.symbols)}"
        self.symbols.append(AbsentSymbols(name, tuple(symbol in found for symbol in every)))
        depths: list[list[str]] = []
        for clause in clauses:
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            code = self.checks.sets.of_clause(clause.clause, {flat.ABSENT: "between"})
            labels = clause.clause.labels
            block = [f"# {comment_text(text)}"]
            indent = ""
            for place, role in enumerate(labels):
                if role == flat.ABSENT:
                    continue
                block += [indent + line for line in self.checks.events_of(role, place)]
                block.append(f"{indent}for place_{place} in range(events_{place}.shape[0]):")
                indent += "    "
            block += [f"{indent}if not ({code}):", f"{indent}    is_there = False"]
            depths.append(block)
        lines = [f"is_there = {name}[symbol[between]]"]
        for block in depths:
            lines.append("if is_there:")
            lines += [f"    {line}" for line in block]
        return [*lines, f"if is_there and {more}:" if more else "if is_there:", "    return False"]


def terms_of(key: Sequence[Expression]) -> tuple[KeyTerm, ...]:
    return tuple(KeyTerm(*named_term(one)) for one in key)


def _no(events: Sequence[Event]) -> str:
    return f"# no {comment_text(' or '.join(dict.fromkeys(event.name for event in events)))}"
