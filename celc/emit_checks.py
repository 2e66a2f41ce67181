"""Clauses over roles → the text of the function that checks events while matches are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from celc.emit_choices import ChoiceCode
from celc.escape import comment_text
from celc.formula import Aggregate, AttributeValue, Previous
from celc.normal_form import ROLE
from celc.roles import RoleClause
from celc.show import show_predicate
from celc.tables import Kind
from celc.terms import labels_in_order

View = dict[str, Any]

MAX_ROLES = 62
"""The roles of an event are the bits of one number."""


@dataclass(slots=True)
class EventCode(ChoiceCode):
    """Conditions over `event_k`, the event that plays role k of a clause, and `here`, the newest
    one, as what PREV looks at."""

    def _event(self, node: AttributeValue | Previous | Aggregate) -> str:
        if isinstance(node, Previous):
            return "here"
        assert isinstance(node, AttributeValue)
        return f"event_{self._labels.index(node.label)}"

    def _at_first(self, label: str) -> str | None:
        return None  # it is asked when the event before it is there


@dataclass(slots=True)
class CheckCode:
    """Writes the functions `admits` and `completes`; `bit_of`: the bit of each role and of each
    round mark. `sets` are conditions over whole label sets; both read the same columns."""

    choices: EventCode
    sets: ChoiceCode
    kind_bits: int
    bit_of: dict[str, int] = field(default_factory=dict)

    def lines(self, clauses: Sequence[RoleClause]) -> list[str]:
        """The body of `admits`: for each clause and each of its roles that the newest event can
        play, a loop over the events that can play the others."""
        lines: list[str] = []
        for clause in clauses:
            if clause.when == "complete":
                continue
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            lines.append(f"# {comment_text(text)}")
            code = self.choices.of_clause(clause.clause)
            if clause.when != "pairs":
                lines += self._for_later(clause, code)
                continue
            for pivot in range(len(clause.clause.labels)):
                lines += self._for_pivot(clause, pivot, code)
        return lines

    def complete_lines(self, clauses: Sequence[RoleClause]) -> list[str]:
        """The body of `completes`: for each clause the events of its roles, and a loop over the
        choices."""
        lines: list[str] = []
        for clause in clauses:
            if clause.when != "complete":
                continue
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            lines.append(f"# {comment_text(text)}")
            code = self.sets.of_clause(clause.clause)
            for number, role in enumerate(labels_in_order(clause.clause)):
                bit = 1 << self._bit(role)
                asked = f"path, depth, ROLES, {bit}, {self.kind_bits}, first"
                lines.append(f"events_{number} = events_of_role({asked})")
            indent = ""
            for number in range(len(clause.clause.labels)):
                lines.append(f"{indent}for place_{number} in range(events_{number}.shape[0]):")
                indent += "    "
            lines.append(f"{indent}if not ({code}):")
            lines.append(f"{indent}    return False")
        return lines

    def _for_later(self, clause: RoleClause, code: str) -> list[str]:
        """The newest event as what comes before the next one of its role, or before all of them."""
        (role,) = clause.clause.labels
        bit = 1 << self._bit(role)
        there = f"ROLES[path[place_0] & {(1 << self.kind_bits) - 1}]"
        lines = [f"if roles & {bit}:", "    for place_0 in range(depth - 1, -1, -1):"]
        if clause.round_mark is not None:
            begins = f"        if {there} & {1 << self._bit(clause.round_mark)}:"
            lines += [begins, "            break  # it begins a later round"]
        lines += [
            f"        if not {there} & {bit}:",
            "            continue",
            f"        event_0 = (path[place_0] >> {self.kind_bits}) - first",
            f"        if not ({code}):",
            "            return False",
        ]
        if clause.when == "neighbours":
            lines.append("        break")
        return lines

    def roles_of(self, kinds: Sequence[Kind]) -> list[int]:
        """The roles of an event of each kind, as a bit set."""
        return [
            sum(1 << self._bit(mark) for mark in kind.marks if mark in self.bit_of)
            for kind in kinds
        ]

    def _bit(self, role: str) -> int:
        return self.bit_of.setdefault(role, len(self.bit_of))

    def _for_pivot(self, clause: RoleClause, pivot: int, code: str) -> list[str]:
        """The choices in which the newest event plays role `pivot` and none of those before it."""
        labels = clause.clause.labels
        lines = [f"if roles & {1 << self._bit(labels[pivot])}:", f"    event_{pivot} = here"]
        indent = "    "
        for number, role in enumerate(labels):
            if number == pivot:
                continue
            newest = "depth" if number > pivot else "depth - 1"
            lines.append(f"{indent}for place_{number} in range({newest}, -1, -1):")
            indent += "    "
            there = f"ROLES[path[place_{number}] & {(1 << self.kind_bits) - 1}]"
            if clause.round_mark is not None:
                mark = 1 << self._bit(clause.round_mark)
                lines.append(f"{indent}if place_{number} < depth and {there} & {mark}:")
                lines.append(f"{indent}    break  # it begins a later round")
            lines.append(f"{indent}if not {there} & {1 << self._bit(role)}:")
            lines.append(f"{indent}    continue")
            lines.append(
                f"{indent}event_{number} = (path[place_{number}] >> {self.kind_bits}) - first"
            )
        lines.append(f"{indent}if not ({code}):")
        lines.append(f"{indent}    return False")
        return lines


def is_role(mark: str) -> bool:
    """Whether a mark is a role or the mark of a round."""
    return mark.startswith(ROLE)
