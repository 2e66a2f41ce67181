"""Formulas, made bottom-up from the rules of the grammar.

The parser calls the method with a rule's name (or its alias) with the values of the rule's symbols,
in order; tokens are such values. Nothing here is recursive. Chains of one operator grow as lists.
The next looser level makes flat tuples of them, so parentheses keep their meaning.
"""

from dataclasses import replace

from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.absences import misplaced_absences
from celc.parse.conditions import ConditionBuilder, Values, name_of
from celc.parse.mistakes import absences, repeats
from celc.parse.mistakes import trees as tree_errors
from celc.parse.mistakes.tokens import is_full
from celc.parse.sequences import (
    Negated,
    Optional,
    RoundsBuilder,
    Step,
    check_optional,
    link_of,
)
from celc.parse.tokens import Token, name_text

STRATEGY_SYNONYMS = {"NEXT": "NXT"}


class FormulaBuilder(ConditionBuilder, RoundsBuilder):
    """The methods for everything that is not a clause or a declaration."""

    # --- formulas ---

    def event(self, c: Values) -> syntax.EventAtom:
        self._labels.setdefault(name_text(c[-1]), name_text(c[-1]))
        stream = name_of(c[0]) if len(c) == 3 else None
        return syntax.EventAtom(stream, name_of(c[-1]), c[0].span.to(c[-1].span))

    def labelled(self, c: Values) -> syntax.As:
        event = c[0].type.text if isinstance(c[0], syntax.EventAtom) else None
        self._labels[name_text(c[2])] = event
        self._check_postfix(c[0], c[1].span.to(c[2].span))
        return syntax.As(c[0], name_of(c[2]), c[0].span.to(c[2].span))

    def renamed(self, c: Values) -> syntax.Rename:
        self._check_postfix(c[0], c[1].span.to(c[5].span))
        return syntax.Rename(c[0], name_of(c[2]), name_of(c[4]), c[0].span.to(c[5].span))

    def iteration(self, c: Values) -> syntax.Iteration | syntax.First:
        rounds = syntax.Iteration(c[0], c[1].type == "COLON_PLUS", c[0].span.to(c[1].span))
        return self._rounds_of_first(rounds, c[1].span)

    def counted(self, c: Values) -> syntax.Iteration | syntax.First:
        return self._rounds_of_first(self.rounds(c), c[1].span.to(c[3].span))

    def _rounds_of_first(
        self, rounds: syntax.Iteration, sign: Span
    ) -> syntax.Iteration | syntax.First:
        """Rounds; those of `(FIRST ψ)` choose again in each round."""
        operand = rounds.operand
        if not isinstance(operand, syntax.First):
            return rounds
        if rounds.contiguous or (operand.least, operand.most) != (1, 1):
            self._check_postfix(operand, sign)
            return rounds
        return replace(operand, least=rounds.least, most=rounds.most, span=rounds.span)

    def _check_postfix(self, operand: syntax.Formula, sign: Span) -> None:
        """Report a sign after `(FIRST ψ)` that is none of its rounds."""
        if isinstance(operand, syntax.First):
            written = self._written(operand.operand), self.diagnostics.source.slice(sign)
            self.report(absences.after_first(sign, *written))

    def first(self, c: Values) -> syntax.First:
        word, operand = c
        if isinstance(operand, Negated):
            self.report(absences.first_of_absence(word.span.to(operand.bang)))
            operand = operand.operand
        if isinstance(operand, Optional):
            written = self._written(operand.operand)
            self.report(absences.optional_in_first(word.span, operand.sign, written))
            operand = operand.operand
        if isinstance(operand, syntax.First):
            self.report(absences.doubled_first(word.span))
            return operand
        return syntax.First(operand, word.span.to(operand.span))

    def selection(self, c: Values) -> syntax.Selector:
        strategy = STRATEGY_SYNONYMS.get(c[0].type, c[0].type)
        return syntax.Selector(strategy, c[2], c[0].span.to(c[3].span))

    def projection(self, c: Values) -> syntax.Project:
        labels = tuple(name_of(token) for token in c[2]) if len(c) == 7 else ()
        return syntax.Project(labels, c[-2], c[0].span.to(c[-1].span))

    def local_window(self, c: Values) -> syntax.Within:
        return syntax.Within(c[2], c[5], c[0].span.to(c[6].span))

    def other_event(self, c: Values) -> syntax.OtherEvent:
        if not _is_single_event(c[2]):
            self.report(tree_errors.not_of_several(c[0].span, self._written(c[2])))
        return syntax.OtherEvent(c[2], c[0].span.to(c[3].span))

    def negated(self, c: Values) -> Negated:
        bang, operand = c[:2]
        if len(c) == 4:
            return Negated(bang.span, operand, length=c[3])
        if isinstance(operand, Negated):
            doubled = bang.span.to(operand.bang)
            return Negated(doubled, operand.operand, doubled=True, length=operand.length)
        if isinstance(operand, Optional):
            self.report(repeats.optional_absence(operand.sign))
            return Negated(bang.span, operand.operand)
        return Negated(bang.span, operand)

    def lone_operand(self, c: Values) -> syntax.Formula:
        step = self._step(None, c[0])
        if step.bang is not None:
            absence = None if step.length is None else self.diagnostics.source.slice(step.span)
            self.report(absences.lone_negation(step.bang, absence))
        if step.question is not None and not is_full(self.diagnostics):
            source = self.diagnostics.source
            self.report(repeats.lone_optional(source, step.operand.span, step.question))
        return step.operand

    def _step(self, operator: Token | None, operand: syntax.Formula | Negated | Optional) -> Step:
        if isinstance(operand, Optional):
            return Step(operator, operand.operand, question=operand.sign)
        if not isinstance(operand, Negated):
            return Step(operator, operand)
        if operand.doubled:
            self.report(absences.doubled_bang(operand.bang))
        return Step(operator, operand.operand, operand.bang, length=operand.length)

    def new_links(self, c: Values) -> list[Step]:
        return [self._step(None, c[0]), self._step(c[1], c[2])]

    def more_links(self, c: Values) -> list[Step]:
        c[0].append(self._step(c[1], c[2]))
        return c[0]  # type: ignore[no-any-return]

    def sequence(self, c: Values) -> syntax.Formula:
        steps: list[Step] = c[0]
        if (round_of_first := _round_of_first(steps)) is not None:
            return round_of_first
        read = self._read or tuple(self._streams)
        types = [name for stream in read for name in self._streams.get(stream, ())]
        times = {name: self._times.get(name, ()) for name in types}
        for problem in misplaced_absences(steps, self.diagnostics.source, times):
            self.report(problem)
        first, last = steps[0], steps[-1]
        before = first if first.length is not None else None
        after = last if last.bang is not None and last is not before else None
        rest = steps[before is not None : len(steps) - (after is not None)]
        if not rest:
            return first.operand  # two absences with nothing between them, which is reported
        check_optional(rest, self.diagnostics)
        found = self._chain(rest)
        if before is not None and before.length is not None:
            span = before.span.to(found.span)
            found = syntax.AbsenceBefore(before.operand, before.length, found, span)
        if after is not None and after.bang is not None:
            span = found.span.to(after.span)
            found = syntax.AbsenceAfter(found, after.operand, after.length, after.bang, span)
        return found

    def _chain(self, steps: list[Step]) -> syntax.Formula:
        if len(steps) == 1:
            return steps[0].operand
        return syntax.Sequence(
            first=steps[0].operand,
            links=tuple(link_of(step) for step in steps[1:]),
            span=steps[0].span.to(steps[-1].span),
            first_is_optional=steps[0].question is not None,
        )

    def new_joints(self, c: Values) -> Values:
        return [c[0], _joint(c)]

    def more_joints(self, c: Values) -> Values:
        c[0].append(_joint(c))
        return c[0]  # type: ignore[no-any-return]

    def conjunction(self, c: Values) -> syntax.Conjunction:
        first, *joints = c[0]
        return syntax.Conjunction(first, tuple(joints), first.span.to(joints[-1].operand.span))

    def disjunction(self, c: Values) -> syntax.Disjunction:
        return syntax.Disjunction(tuple(c[0]), c[0][0].span.to(c[0][-1].span))

    def unless(self, c: Values) -> syntax.Unless:
        return syntax.Unless(c[0], c[2], c[0].span.to(c[2].span))

    def filter(self, c: Values) -> syntax.Filter:
        return syntax.Filter(c[0], c[2], c[0].span.to(c[2].span))


def _round_of_first(steps: list[Step]) -> syntax.First | None:
    """`!χ ; FIRST ψ`, a round of FIRST; None: the sequence is another one."""
    if len(steps) != 2:
        return None
    absent, chosen = steps
    if absent.bang is None or absent.length is not None or chosen.question is not None:
        return None
    if chosen.operator is None or chosen.operator.type == "COLON":
        return None
    first = chosen.operand
    if not isinstance(first, syntax.First) or first.absent or first.most != 1:
        return None
    return replace(first, absent=absent.operand, span=absent.span.to(chosen.span))


def _joint(c: Values) -> syntax.Joint:
    return syntax.Joint(c[1].type, c[2], c[1].span)


def _is_single_event(formula: syntax.Formula) -> bool:
    """Whether a formula is an event type, with conditions, a label or alternatives."""
    waiting = [formula]
    while waiting:
        match waiting.pop():
            case syntax.EventAtom():
                pass
            case syntax.As(operand=operand) | syntax.Filter(operand=operand):
                waiting.append(operand)
            case syntax.Disjunction(operands=operands):
                waiting.extend(operands)
            case _:
                return False
    return True
