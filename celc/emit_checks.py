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

View = dict[str, Any]

MAX_ROLES = 62
"""The roles of an event are the bits of one number."""


@dataclass(slots=True)
class EventCode(ChoiceCode):
    """Conditions over `event_k`, the event that plays role k of a clause."""

    def _event(self, node: AttributeValue | Previous | Aggregate) -> str:
        assert isinstance(node, AttributeValue)
        return f"event_{self._labels.index(node.label)}"


@dataclass(slots=True)
class CheckCode:
    """Writes the function `admits`; `bit_of`: the bit of each role and of each round mark."""

    choices: EventCode
    kind_bits: int
    bit_of: dict[str, int] = field(default_factory=dict)

    def lines(self, clauses: Sequence[RoleClause]) -> list[str]:
        """The body: for each clause and each of its roles that the newest event can play, a loop
        over the events that can play the others."""
        lines: list[str] = []
        for clause in clauses:
            text = " OR ".join(map(show_predicate, clause.written.predicates))
            lines.append(f"# {comment_text(text)}")
            code = self.choices.of_clause(clause.clause)
            for pivot in range(len(clause.clause.labels)):
                lines += self._for_pivot(clause, pivot, code)
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
