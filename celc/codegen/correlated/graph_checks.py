"""Conditions between events → the functions that check a step in a graph of matches.

`admits` compares the newest event of a path with all events after it. In a graph many paths lead to
a node, so its step is checked by the numbers that are kept for all of them (`celc.plan.carried`).
`steps` checks the newest event against these numbers and then takes it in; `ends` checks a match
whose first event it is. Each takes the same time for any path.

Rejected: these functions for listings as well. A loop over the few events of a short path is faster
than memory for what is kept, and a long one is rare there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from celc.codegen.correlated.checks import CheckCode
from celc.codegen.text.escape import comment_text
from celc.core import formula as core
from celc.core.show import show_predicate
from celc.core.terms import labels_in_order, nodes_written_in
from celc.core.traversal import Leaf, map_leaves
from celc.normal.flat_form import RoleClause
from celc.plan.carried import Carried, Kept, compared_with_count
from celc.plan.strategy import Checked

_NEWEST = "newest"
_MOST = 1 << 62
"""More than the events of any match: there is no such bound."""


class GraphCode:
    """Writes `steps` and `ends` by a writer of conditions that has written nothing yet."""

    def __init__(self, writer: CheckCode, checks: Checked, carried: Carried) -> None:
        self._writer = writer
        self._checks = checks
        self._carried = carried
        self._row_of: dict[Kept | core.Aggregate, int] = {}
        """The row of `state` with the number."""

    def step_lines(self, window_lines: Iterable[str]) -> list[str]:
        """The body of `steps`; `window_lines` are those for windows of parts, by the writer."""
        lines = [*window_lines]
        compared = [one for one in self._checks.clauses if one.when in ("pairs", "earlier")]
        between = (one for one in self._checks.clauses if one.when in ("neighbours", "witness"))
        lines += self._writer.lines([*between])
        for kept in self._carried.kept:
            self._row_of[kept] = self._writer.states
            self._writer.states += 3 if kept.how == "before" else 1
        for clause in compared:
            lines += self._compared(clause)
        for kept in self._carried.kept:
            lines += self._before(kept) if kept.how == "before" else self._kept(kept)
        for function in self._carried.functions:
            self._row_of[function] = self._writer.states
            lines += self._writer.running_lines((function,))
        return lines

    def end_lines(self) -> list[str]:
        """The body of `ends`."""
        lines = self._writer.complete_lines(())
        for clause in self._checks.clauses:
            if clause.when == "complete":
                lines += self._whole(clause)
        return lines

    # --- steps ------------------------------------------------------------------------------------

    def _compared(self, clause: RoleClause) -> list[str]:
        """Lines that compare the newest event with the kept events of a clause."""
        kept = [one for one in self._carried.kept if one.clause is clause]
        if any(one.side is None and one.how == "there" for one in kept) or (
            len(clause.clause.labels) > 2
        ):
            return self._writer.lines((clause,))
        lines = [self._comment(clause)]
        code, rest = self._truths(clause)
        roles = clause.clause.labels
        for one in kept:
            newest = next((role for role in roles if role != one.role), one.role)
            event = f"event_{roles.index(one.role)}"
            lines += [
                f"if depth > 0 and roles & {1 << self._writer.bit(newest)}:",
                f"    {event} = {self._at(one, 'depth - 1')}",
            ]
            if newest != one.role:
                lines.append(f"    event_{roles.index(newest)} = here")
            if one.how != "event":
                lines += [f"    if {event} == -2 and not ({rest}):", "        return False"]
            lines += [f"    if {event} >= 0 and not ({code}):", "        return False"]
        if len(roles) > 1:
            bits = [1 << self._writer.bit(role) for role in roles]
            lines += [
                "if " + " and ".join(f"roles & {bit}" for bit in bits) + ":",
                "    event_0 = event_1 = here",
                f"    if not ({code}):",
                "        return False",
            ]
        return lines

    def _truths(self, clause: RoleClause) -> tuple[str, str]:
        """A clause of chosen events, and what is left of it where a comparison is not TRUE."""
        whole = self._writer.choices.of_clause(clause.clause)
        left = replace(clause.clause, predicates=clause.clause.predicates[1:])
        return whole, self._writer.choices.of_clause(left)

    def _kept(self, one: Kept) -> list[str]:
        starts = "0" if one.how == "unseen" else "-1"
        lines = [
            self._comment(one.clause),
            f"kept = {self._at(one, 'depth - 1')} if depth > 0 else {starts}",
            f"if roles & {1 << self._writer.bit(one.role)}:",
            *(f"    {line}" for line in self._kept_of_newest(one)),
        ]
        ends = [*one.until, *filter(None, (one.round_mark,))]
        if ends:
            bits = sum(1 << self._writer.bit(mark) for mark in ends)
            lines += [f"if roles & {bits}:", "    kept = -1  # nothing before is compared with it"]
        return [*lines, f"{self._at(one, 'depth')} = kept"]

    def _kept_of_newest(self, one: Kept) -> list[str]:
        if one.how == "event":
            return ["kept = here"]
        if one.side is None:
            return ["kept = 0"]
        span, choices = one.clause.clause.span, self._writer.choices
        clause = replace(one.clause.clause, labels=(one.role,))
        test = replace(clause, predicates=(core.NullTest(one.side, False, span),))
        is_null = choices.of_clause(test, {one.role: "here"})
        if one.how == "there":
            return [f"kept = kept if {is_null} else 0"]
        if one.how == "unseen":
            return [f"kept = min(kept + 1, 2) if {is_null} else 1"]
        # The kept event stands under the role, the newest one under another name.
        newest = map_leaves(core.Comparison("=", one.side, one.side, span), _of_newest)
        assert isinstance(newest, core.Comparison)
        operators: dict[str, core.ComparisonOperator] = {"least": ">", "greatest": "<"}
        asked = core.Comparison(operators.get(one.how, "="), one.side, newest.left, span)
        both = replace(clause, labels=(one.role, _NEWEST), predicates=(asked,))
        code = choices.of_clause(both, {one.role: "kept", _NEWEST: "here"})
        lines = [f"if {is_null}:", f"    kept = {'kept' if one.nulls_pass else -2}"]
        if one.how == "equal":
            return [
                *lines,
                "elif kept == -1:",
                "    kept = here",
                f"elif kept >= 0 and not {code}:",
                "    kept = -2",
            ]
        return [*lines, f"elif kept == -1 or (kept >= 0 and {code}):", "    kept = here"]

    def _before(self, one: Kept) -> list[str]:
        """Lines that keep how many events of a role may come before the newest one.

        Such an event is one of them for those after it. Its own condition is TRUE if it is the
        first. Bounds that no number of events reaches are left out, so that more paths agree.
        """
        clause, row = one.clause, self._row_of[one]
        rows = [f"state[{row + number}, DEPTH]" for number in range(3)]
        known = ", ".join(rows).replace("DEPTH", "depth - 1")
        roles = clause.clause.labels
        others = [kept for kept in self._carried.kept if kept.clause is clause and kept != one]
        lines = [
            self._comment(clause),
            f"low, high, none = 1, {_MOST}, 1",
            "if depth > 0:",
            f"    low, high, none = {known}",
            f"if roles & {1 << self._writer.bit(one.role)}:",
            "    if low > high:",
            "        return False",
            f"    high -= high < {_MOST}",
            "    none = np.int64(low <= 1)",
            "    low = max(low - 1, 1)",
            f"    event_{roles.index(one.role)} = here",
        ]
        for kept in others:
            place = roles.index(kept.role)
            lines.append(f"    event_{place} = {self._at(kept, 'depth - 1')} if depth > 0 else -1")
        bounds = self._bounds(clause)
        if others:
            there = " and ".join(f"event_{roles.index(kept.role)} >= 0" for kept in others)
            bounds = [f"if {there}:", *(f"    {line}" for line in bounds)]
        now = ", ".join(rows).replace("DEPTH", "depth")
        return [
            *lines,
            *(f"    {line}" for line in bounds),
            "    if high >= here:",
            f"        high = {_MOST}",
            "    if low > min(high, here):",
            "        if none == 0:",
            "            return False",
            "        low, high = 1, 0",
            f"{now} = low, high, none",
        ]

    def _bounds(self, clause: RoleClause) -> list[str]:
        """Lines that find for which numbers of events before it a condition is TRUE of an event. It
        is TRUE up to a number, or from one on, which is searched by halves."""
        found = compared_with_count(clause)
        assert found is not None
        comparison, is_left = found
        operator = comparison.operator if is_left else core.MIRRORED[comparison.operator]
        lines = []
        for asked in ("<=", ">=") if operator == "=" else (operator,):
            turned = asked if is_left else core.MIRRORED[asked]
            bounded = replace(comparison, operator=turned)
            predicates = tuple(
                _alone(bounded if one is comparison else one) for one in clause.clause.predicates
            )
            code = self._writer.choices.of_clause(replace(clause.clause, predicates=predicates))
            if asked[0] == "<":
                lines += [
                    "least, most = 0, here",
                    "while least < most:",
                    "    count = (least + most + 1) // 2",
                    f"    if {code}:",
                    "        least = count",
                    "    else:",
                    "        most = count - 1",
                    "if least < here:",
                    "    high = min(high, least)",
                ]
            else:
                lines += [
                    "least, most = 1, here + 1",
                    "while least < most:",
                    "    count = (least + most) // 2",
                    f"    if {code}:",
                    "        most = count",
                    "    else:",
                    "        least = count + 1",
                    "low = max(low, least)",
                ]
        return lines

    def _at(self, one: Kept, depth: str) -> str:
        return f"state[{self._row_of[one]}, {depth}]"

    # --- ends -------------------------------------------------------------------------------------

    def _whole(self, clause: RoleClause) -> list[str]:
        """Lines that decide a condition on a whole match."""
        kept = [one for one in self._carried.kept if one.clause is clause]
        before = [one for one in kept if one.how == "before"]
        if before:
            test = f"state[{self._row_of[before[0]] + 2}, depth] == 0"
            return [self._comment(clause), f"if {test}:", "    return False"]
        unseen = [one for one in kept if one.how == "unseen"]
        known = [one for one in kept if one.how == "there" and one.side is not None]
        if unseen:
            test = f"{self._at(unseen[0], 'depth')} > 1"
            return [self._comment(clause), f"if {test}:", "    return False"]
        if known:
            tests = [f"{self._at(one, 'depth')} >= 0" for one in kept if one not in known]
            tests += [f"{self._at(one, 'depth')} < 0" for one in known]
            return [self._comment(clause), f"if {' and '.join(tests)}:", "    return False"]
        functions = [
            node
            for predicate in clause.clause.predicates
            for node in nodes_written_in(predicate)
            if isinstance(node, core.Aggregate)
        ]
        if any(one.function == "SUM" for one in functions):
            return self._writer.complete_lines((clause,))
        return self._of_numbers(clause, kept)

    def _of_numbers(self, clause: RoleClause, kept: Sequence[Kept]) -> list[str]:
        """A condition on functions, of which each has a set of its own: the kept event alone, or as
        many events as it counts."""
        named: dict[str, core.Aggregate] = {}

        def apart(node: Leaf) -> core.Expression:
            if not isinstance(node, core.Aggregate):
                return node
            name = f"{node.function} {node.label} {node.attribute}"
            named[name] = node
            return replace(node, label=name)

        alone = (_alone(one) for one in clause.clause.predicates)
        predicates = tuple(map_leaves(one, apart) for one in alone)
        asked = replace(clause.clause, predicates=predicates)
        code = self._writer.sets.of_clause(asked)
        lines = [self._comment(clause)]
        row_of = {one.role: self._row_of[one] for one in kept}
        for number, label in enumerate(labels_in_order(asked)):
            function = named.get(label)
            row = row_of[label] if function is None else self._row_of[function]
            if function is not None and function.function == "COUNT":
                lines.append(f"events_{number} = state[{row}, : state[{row}, depth]]")
                continue
            there = f"depth + (state[{row}, depth] >= 0)"
            lines.append(f"events_{number} = state[{row}, depth:{there}]")
        indent = ""
        for number, _ in enumerate(clause.clause.labels):
            lines.append(f"{indent}for place_{number} in range(events_{number}.shape[0]):")
            indent += "    "
        return [*lines, f"{indent}if not ({code}):", f"{indent}    return False"]

    @staticmethod
    def _comment(clause: RoleClause) -> str:
        text = " OR ".join(map(show_predicate, clause.written.predicates))
        return f"# {comment_text(text)}"


def _of_newest(node: Leaf) -> core.Expression:
    """The attribute of the newest event instead of the chosen one."""
    return replace(node, label=_NEWEST)


def _alone(predicate: core.Predicate) -> core.Predicate:
    """The predicate without the operands that stand beside it in the text."""
    if isinstance(predicate, core.Comparison | core.Membership | core.NullTest):
        return replace(predicate, beside=())
    return predicate
