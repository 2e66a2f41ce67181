"""Keys: an event goes on only from what has its own value, and leaves cells under it.

Where all values are equal, the update with keys does what the update without keys does
(`update_step`). Here one value at a time is another one, or NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from celc_runtime.plan.strategy import KeyTerm

from celc.core.formula import AttributeValue, Cast, Expression
from celc.plan.keys import KeyPlan
from celc.plan.straight_line.piles import PilePlan
from celc.verify.prove.code.machines import BEGIN
from celc.verify.prove.code.relations import Relation
from celc.verify.prove.code.update_code import KEY_VALUE, OTHER_VALUE, Before, Pile
from celc.verify.prove.code.update_step import UpdateStep
from celc.verify.prove.verdict import NotUnderstoodError


def check_keys(
    step: UpdateStep,
    keys: KeyPlan,
    plan: PilePlan,
    terms: Sequence[KeyTerm],
    marks: Sequence[tuple[str, ...]],
) -> None:
    """Raises WrongError where an event goes on from what has another key."""
    of_keys = _Keys(keys, plan, terms, marks)
    for symbol, relation in enumerate(step.relations, 1):
        for term in range(len(terms)):
            for is_known in (True, False):
                values = [KEY_VALUE] * len(terms)
                known = [True] * len(terms)
                if is_known:
                    values[term] = OTHER_VALUE
                else:
                    known[term] = False
                before = Before(
                    dict.fromkeys(step.code.piles, step.clock.starts()[-1]),
                    (symbol,),
                    step.clock.key,
                    step.clock.floor,
                    values=values,
                    known=known,
                )
                of_keys.check(step, before, relation, symbol, term, is_known=is_known)


class _Keys:
    """The terms that events with some marks bring to the keys of piles."""

    def __init__(
        self,
        keys: KeyPlan,
        plan: PilePlan,
        terms: Sequence[KeyTerm],
        marks: Sequence[tuple[str, ...]],
    ) -> None:
        self.keys, self.marks = keys, marks
        self._numbers = {(one.attribute, one.type): number for number, one in enumerate(terms)}
        self.state_of: dict[Pile, int] = {}
        tables: list[tuple[int, ...]] = []
        counts: list[int] = []
        for number, pile in enumerate(plan.piles):
            key = keys.keys[pile.target]
            if not key:
                self.state_of[number] = int(pile.target)
                continue
            if key not in tables:
                tables.append(key)
                counts.append(0)
            table = tables.index(key)
            self.state_of[table, 1 + len(key) + 2 * counts[table]] = int(pile.target)
            counts[table] += 1

    def check(
        self,
        step: UpdateStep,
        before: Before,
        relation: Relation,
        symbol: int,
        term: int,
        *,
        is_known: bool,
    ) -> None:
        def admits(source: Pile | str, kind: int, to: Pile | None) -> bool:
            if not is_known:
                return term not in self._brought(kind)
            reads = () if source == BEGIN else self._of_pile(source, kind)
            return term not in reads and (to is None or term not in self._of_pile(to, kind))

        def empties(pile: Pile) -> bool | None:
            asked = [
                one.terms
                for one in self.keys.removals
                if one.state == self.state_of.get(pile) and symbol in one.symbols
            ]
            if not asked:
                return None
            return any(term not in map(self._number, terms) for terms in asked)

        step.compare(before, relation, admits, empties)

    def _brought(self, kind: int) -> set[int]:
        """The terms of all ties that an event of a kind takes part in."""
        return {
            self._number(one)
            for tie in self.keys.ties
            for one in _terms(tie.terms, self.marks[kind])
        }

    def _of_pile(self, pile: Pile, kind: int) -> set[int]:
        """The terms by which an event of a kind finds the cells of a pile, or puts them there."""
        if pile not in self.state_of:
            return set()
        return {
            self._number(one)
            for tie in self.keys.keys[self.state_of[pile]]
            for one in _terms(self.keys.ties[tie].terms, self.marks[kind])
        }

    def _number(self, term: Expression) -> int:
        plain = term.operand if isinstance(term, Cast) else term
        assert isinstance(plain, AttributeValue)
        found = self._numbers.get((plain.attribute, term.type.value))
        if found is None:
            raise NotUnderstoodError(f"no value of the update is {plain.attribute}")
        return found


def _terms(terms: Sequence[tuple[str, Expression]], marks: tuple[str, ...]) -> set[Expression]:
    return {term for role, term in terms if role in marks}
