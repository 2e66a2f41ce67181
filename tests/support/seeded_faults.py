"""Faults seeded into the passes: a place in a pass, its text, and what is put in its place.

A fault changes the code of functions that are loaded, and nothing else. `seeded` puts it in for as
long as a block runs.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

STREAM = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, n: LONG, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, n: LONG, name: STRING, ts: TIMESTAMP },
  EVENT C { id: INT, v: DOUBLE, n: LONG, name: STRING, ts: TIMESTAMP },
  EVENT D { id: INT, v: DOUBLE, n: LONG, name: STRING, ts: TIMESTAMP },
  EVENT E { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""

QUERIES = {
    "sequence": "SELECT * FROM S WHERE (A AS x : B AS y ; C) "
    "FILTER x.v > 3 AND (y.id = 2 OR y.name = 'q')",
    "between": "SELECT * FROM S WHERE (A AS x ; B AS y) "
    "FILTER x.n NOT IN (1, 3) AND y.v BETWEEN 1 AND 3 AND x.v IS NOT NULL",
    "branches": "SELECT * FROM S WHERE (A ; B) OR ((A FILTER A.v > 3) ; C) OR (B : D)",
    "rounds": "SELECT * FROM S WHERE A ; (B AS y){2,3} ; C",
    "many rounds": "SELECT * FROM S WHERE A ; (B AS y){2,} : C",
    "contiguous": "SELECT * FROM S WHERE A ; (B:+ AS x) ; C",
    "two labels": "SELECT * FROM S WHERE (A AS x ; (B AS y)+) FILTER x.v > 3 OR y.v < 2",
    "count": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER COUNT(x) > 2 AND MAX(x.v) <= 5",
    "least": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER MIN(x.n) > 3 AND LAST(x.name) = 'q'",
    "ends": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER FIRST(x.v) > 2 AND MIN(x.n) != 4",
    "some": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER SOME x: x.v > 3 AND x.n < 2",
    "and": "SELECT * FROM S WHERE ((A AS x)+ ; B) AND (A AS x ; (A AS x)? ; B)",
    "all": "SELECT * FROM S WHERE (A ; B) ALL (C FILTER C.v > 1)",
    "unless": "SELECT * FROM S WHERE (A ; B) UNLESS (C ; D)",
    "absent": "SELECT * FROM S WHERE A ; !(B OR (C ; D)) ; A",
    "strict": "SELECT * FROM S WHERE STRICT(A+ ; B) ; C",
    "nested next": "SELECT * FROM S WHERE NXT(A+ ; B) ; C",
    "nested last": "SELECT * FROM S WHERE LAST(A+ ; B) ; C",
    "most": "SELECT MAX * FROM S WHERE A ; B? ; C",
    "last in window": "SELECT LAST * FROM S WHERE A+ ; B WITHIN 5 SECONDS",
    "next in window": "SELECT NXT * FROM S WHERE A ; B ; C WITHIN 5 SECONDS",
    "first of start": "SELECT FIRST * FROM S WHERE A ; B+ ; C",
    "longest": "SELECT LONGEST * FROM S WHERE A ; B+ ; C",
    "then first": "SELECT * FROM S WHERE A ; FIRST (B ; C)",
    "first behind": "SELECT * FROM S WHERE A ; !D ; FIRST (B ; C)",
    "labels": "SELECT * FROM S WHERE PROJECT[x](A AS x ; B) ; (C AS y)[y -> z] ; B AS y ; B",
    "or between": "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v < y.v OR x.id = 2",
    "shared": "SELECT * FROM S WHERE (A AS x ; B) "
    "FILTER (x.v > 3 OR x.id = 2) AND (x.v > 3 OR x.name = 'q')",
    "missing": "SELECT * FROM S WHERE ((A OR E) AS x ; B) FILTER x.n < 2 OR x.v > 3",
    "absent between": "SELECT * FROM S WHERE (A AS x ; !C ; B AS y) FILTER x.v > 3 AND y.v > 3",
    "of a branch": "SELECT * FROM S WHERE ((A OR (B AS y)) FILTER COUNT(y) > 0) ; C",
    "outer several": "SELECT * FROM S WHERE (A AS x)+ ; (B AS y FILTER x.v > 3 OR y.v > 1)",
    "outer": "SELECT * FROM S WHERE A AS x ; (B AS y FILTER x.v > 3 OR y.v > 1)+",
    "keys": "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id",
    "taken away": "SELECT * FROM S WHERE (A AS x ; !(C AS c FILTER c.id = x.id) ; B AS y) "
    "FILTER x.id = y.id",
    "absent above": "SELECT * FROM S WHERE (A AS x ; !(C AS c FILTER c.v > x.v) ; B AS y)",
    "rising": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER x.v > PREV(x.v)",
    "above": "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND z.v >= x.v",
    "sum": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER SUM(x.n) > 4",
    "prior": "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER x.n > MAX(PRIOR x.n)",
    "key of a round": "SELECT * FROM S WHERE ((A AS x ; B AS y) FILTER x.id = y.id)+ ; C",
    "in a branch": "SELECT * FROM S WHERE ((A AS x ; B AS y) FILTER x.v < y.v) OR (A ; C)",
    "window inside": "SELECT * FROM S WHERE A ; !(WITHIN[5 SECONDS](B ; B)) ; C",
    "part in window": "SELECT * FROM S WHERE WITHIN[5 SECONDS](A ; B) ; C",
    "before": "SELECT * FROM S WHERE !(B AS b FILTER b.v > 3) FOR 5 SECONDS ; A",
    "before and key": "SELECT * FROM S WHERE !(B AS b FILTER b.id = x.id) FOR 5 SECONDS ; A AS x",
    "after": "SELECT * FROM S WHERE A ; !B FOR 5 SECONDS",
    "inside": "SELECT * FROM S WHERE (A AS x ; B) UNLESS (C AS c FILTER c.id = x.id)",
    "consumed": "SELECT * FROM S WHERE A ; B CONSUME BY ANY",
    "window": "SELECT * FROM S WHERE A ; B ; C WITHIN 5 SECONDS",
    "key and more": "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.id = y.id AND x.v < y.v",
    "inside itself": "SELECT * FROM S WHERE (A AS x ; A AS y) UNLESS (A AS c FILTER c.v > x.v)",
    "by definition": "SELECT * FROM S WHERE C ; (A ; !((B AS b ; C AS c) FILTER b.v < c.v) ; A)",
    "equal": "SELECT * FROM S WHERE ((A FILTER A.v = 3) ; B) OR ((A FILTER A.v >= 3) ; C)",
    "mirrored": "SELECT * FROM S WHERE ((A FILTER 3 < A.v) ; B) OR ((A FILTER A.v > 4) ; C)",
    "whole numbers": "SELECT * FROM S WHERE ((A FILTER A.n > 1 AND A.n < 5) ; B) OR (A ; C)",
    "in an instant": "SELECT * FROM S WHERE (A ALL B) ; C",
}
"""The queries on which faults are looked for, by name."""

SIMULTANEOUS = frozenset({"in an instant"})


@dataclass(frozen=True)
class Fault:
    """A fault: in the module of a file `old` is replaced by `new`. `query` is one that shows it."""

    file: str
    old: str
    new: str
    query: str
    which: int = 0  # of several places with this text

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()!r} → {self.new.strip()!r}"


def _in(file: str, *rows: tuple[Any, ...]) -> list[Fault]:
    return [Fault(file, *row) for row in rows]


FAULTS = (
    *_in(
        "celc/normal/normalize.py",
        (
            "if any(fold_predicate(p) for p in clause.predicates if not looks_back(p)):",
            "if len(open_to_events) > 1:",
            "or between",
        ),
        (
            "form = restrict_each(form, plain)\n",
            "form = restrict_each(form, plain[:1])\n",
            "sequence",
        ),
        (
            "return relabel(self._form(formula.operand), lp.AddLabel(formula.label))",
            "return self._form(formula.operand)",
            "sequence",
        ),
        (
            "self.scope(formula.operand), lp.RenameLabel(formula.old, formula.new)",
            "self.scope(formula.operand), lp.AddLabel(formula.new)",
            "labels",
        ),
        (
            "return relabel(self.scope(formula.operand), lp.KeepLabels(formula.labels))",
            "return self.scope(formula.operand)",
            "labels",
        ),
        ("bounds = (formula.least, formula.most)", "bounds = (1, formula.most)", "rounds"),
        ("fact if truth else lp.negated(fact)", "fact if truth else fact", "outer"),
        (
            "if not here:\n            return restrict(form, predicates or {lp.EVENT: ()})",
            "if not here:\n            return restrict(form, dict([*predicates.items()][:1]) "
            "or {lp.EVENT: ()})",
            "two labels",
        ),
    ),
    *_in(
        "celc/normal/rewrite.py",
        ("return rounds_of(form, restrict(form.operand, parts))", "return form", "two labels"),
        (
            "return len(self._kept) > MOST_COMPARED or "
            "can_hold_together(tuple(self._kept.values()))",
            "return len(self._kept) < 2",
            "between",
        ),
        (
            "if new.issubset(self._kept[number].predicates):",
            "if new.intersection(self._kept[number].predicates):",
            "shared",
        ),
        (
            "return core.Constant(None, node.type, node.span)",
            "return core.Constant(0, node.type, node.span)",
            "missing",
        ),
        (
            "left, right = restrict(form.left, parts), restrict(form.right, parts)\n         "
            "   return absence(left",
            "left, right = restrict(form.left, parts), form.right\n            return absence(left",
            "absent between",
        ),
        ("return form if truth else lp.Disjunction((), span)", "return form", "of a branch"),
    ),
    *_in(
        "celc/normal/conditions/facts.py",
        (
            "return lp.Not(lp.SomeEvent(label, lp.EventClause(predicates), holds=False))",
            "return lp.SomeEvent(label, lp.EventClause(predicates))",
            "outer several",
        ),
        ("for n in range(math.ceil(above) + 2)", "for n in range(math.ceil(above) + 1)", "count"),
        (
            '"<" if function == "MIN" else ">", operand, constant',
            '"<=" if function == "MIN" else ">", operand, constant',
            "ends",
        ),
        (
            "return lp.all_of([occurs, lp.Not(further), lp.Not(equal)])",
            "return lp.all_of([occurs, lp.Not(further)])",
            "least",
        ),
        ("return lp.all_of([occurs, lp.Not(further)])\n", "return lp.Not(further)\n", "count"),
        ("operator = core.MIRRORED[operator]  # >", "operator = operator  # >", "count"),
        (
            "return lp.negated(some) if predicate.negated else some",
            "return lp.negated(some)",
            "some",
        ),
    ),
    *_in(
        "celc/normal/constructors.py",
        ("if is_empty(operand) or most == 1:", "if is_empty(operand) or most == 3:", "rounds"),
        (
            "return lp.Correlated(form.operand, (*form.clauses, clause), labels, span)",
            "return lp.Correlated(form.operand, (clause,), labels, span)",
            "keys",
        ),
        (
            "return left if left == right else lp.Conjunction(left, right, span)",
            "return left",
            "and",
        ),
        (
            "if is_empty(form) or (is_one_event(form) and _is_finite(window)):",
            "if True:",
            "part in window",
        ),
    ),
    *_in(
        "celc/normal/normal_form.py",
        (
            "return (labels - {self.old}) | {self.new} if self.old in labels else labels",
            "return labels - {self.old} if self.old in labels else labels",
            "labels",
        ),
        ("return tuple(sorted(found))", "return tuple(sorted(found))[:1]", "sequence"),
    ),
    *_in(
        "celc/normal/conditions/truths.py",
        ("yield true_of.null", "pass", "between"),
        ("yield False, _below(numbers[0])", "yield False, numbers[0]", "branches"),
        ("yield False, number\n", "pass\n", "equal"),
        ("operator = core.MIRRORED[operator]", "operator = operator", "mirrored"),
        ("if truth & mask & closed != mask & closed:", "if True:", "sequence"),
        ("return low + 1 if high - low > 1 else low", "return low", "whole numbers"),
    ),
    *_in(
        "celc/automata/predicates.py",
        (
            "return sum(1 << k for k, group in enumerate(self.groups) if wanted.issuperset(group))",
            "return sum(1 << k for k, group in enumerate(self.groups) if "
            "wanted.intersection(group)) & 1",
            "sequence",
        ),
        (
            "if any(truth & need == need for need in wanted)",
            "if all(truth & need == need for need in wanted)",
            "branches",
        ),
        (
            "places.setdefault(clause, []).append(number)",
            "places.setdefault(clause, []).append(0)",
            "branches",
        ),
        ("if symbol.truth & needed == needed", "if symbol.truth == needed", "branches"),
    ),
    *_in(
        "celc/automata/construct.py",
        ("if not form.contiguous[index]:", "if form.contiguous[index]:", "sequence"),
        (
            "leave = exits if number >= form.least else ()\n            go_on",
            "leave = exits if number > form.least else ()\n            go_on",
            "rounds",
        ),
        ("starts = (*entries, between) if repeats else entries", "starts = entries", "many rounds"),
        (
            "for operand in form.operands:\n                    self.build(operand, entries, "
            "exits)",
            "for operand in form.operands[:2]:\n                    self.build(operand, "
            "entries, exits)",
            "branches",
        ),
        (
            "self.build(form.right, tuple(state_of.values()), exits)",
            "self.build(form.right, (state_of[0],), exits)",
            "absent",
        ),
        (
            "self.add(state_of[watched], letters, (), state_of[after], ())",
            "self.add(state_of[watched], letters, (), state_of[0], ())",
            "absent",
        ),
        ("add(source, Place.FIRST, has_one, taken=True)", "pass", "in an instant"),
        ("for watches in ((one, gap), (one,))", "for watches in ((one,), (one,))", "first behind"),
    ),
    *_in(
        "celc/automata/graphs.py",
        ("and labels(one.marks) == labels(other.marks)", "", "and"),
        ("if state in (INITIAL, FINAL) else []", "if state == INITIAL else []", "all"),
        (
            "if index == INITIAL or state >> index & 1",
            "if (index == INITIAL and not state) or state >> index & 1",
            "unless",
        ),
        ("if not reached >> FINAL & 1:", "if not reached >> INITIAL & 1:", "unless"),
        ("return min(state + 1, len(fact.truths) - 1)", "return min(state + 1, 1)", "count"),
        (
            'if fact.end == "FIRST" and state != _NOTHING:',
            'if fact.end == "LAST" and state != _NOTHING:',
            "ends",
        ),
        (
            "return _YES if satisfied == fact.holds else state",
            "return _YES if satisfied else _NO",
            "least",
        ),
    ),
    *_in(
        "celc/automata/select.py",
        ("if not (key[1] == _AFTER and phase == _IN):", "if True:", "strict"),
        (
            "ahead = block.after(equal | better, True) | block.after(better, False)",
            "ahead = block.after(better, True) | block.after(better, False)",
            "nested last",
        ),
        ("ahead |= block.after(equal, True)\n                even", "even", "nested next"),
        ("return even & ~ahead, ahead", "return even, ahead & ~even", "nested next"),
        ("if after[1] >> edge.target & 1:", "if after[0] >> edge.target & 1:", "nested next"),
        (
            "moves.append((block.mask, contexts[following]))",
            "moves.append((block.mask, 0))",
            "nested next",
        ),
    ),
    *_in(
        "celc/automata/per_start.py",
        (
            "if first and (even | ahead | rest) >> FINAL & 1:",
            "if first and even >> FINAL & 1:",
            "first of start",
        ),
        ("ahead |= block.after(equal, True)", "pass", "first of start"),
    ),
    *_in(
        "celc/automata/determinize.py",
        ("accepts = 1 in moves[marks]", "accepts = moves[marks] == {1}", "rounds"),
        ("if accepts or target in number", "if accepts or target == 1", "rounds"),
    ),
    *_in(
        "celc/automata/minimise.py",
        ("letters[key] = letters.get(key, 0) | symbols", "letters[key] = 0", "rounds"),
        (
            "for part in new:\n                waiting.append(len(blocks))",
            "for part in new[:0]:\n                waiting.append(len(blocks))",
            "rounds",
        ),
    ),
    *_in(
        "celc/normal/flatten.py",
        (
            "labels = tuple(roles[label] for label in clause.labels)\n        when",
            "labels = tuple(roles[label] for label in clause.labels[:1])\n        when",
            "in a branch",
        ),
        (
            "found = (marked_last(sides[0], first), marked_first(sides[1], last))",
            "found = (marked_last(sides[0], last), marked_first(sides[1], first))",
            "absent above",
        ),
        (
            "self.absent.append(AbsentEvent(events, over_roles, first, last, inclusive))",
            "self.absent.append(AbsentEvent(events, over_roles, first, last, not inclusive))",
            "inside itself",
        ),
        ("self.windows.append(RoleWindow(form.window, first, last))", "pass", "part in window"),
        (
            "self.events_before.append(EventBefore(events, over_roles, form.length, first))",
            "pass",
            "before and key",
        ),
    ),
    *_in(
        "celc/plan/keys.py",
        (
            "c for c in clauses if any(_is_among(c, {*tie.terms}, tie.round_mark) for tie in ties)",
            "c for c in clauses",
            "key and more",
        ),
    ),
    *_in(
        "celc/plan/key_removals.py",
        (
            "found.append(KeyRemoval(state, symbols, terms))",
            "found.append(KeyRemoval(state, frozenset(), terms))",
            "taken away",
        ),
    ),
    *_in(
        "celc/plan/straight_line/pile_bounds.py",
        (
            'strict, rises = comparison.operator in ("<", ">"), comparison.operator[0] == "<"',
            'strict, rises = comparison.operator in ("<", ">"), comparison.operator[0] == ">"',
            "above",
        ),
        ('strict, rises = comparison.operator in ("<", ">")', "strict, rises = True", "above"),
    ),
    *_in(
        "celc/normal/relax.py",
        (
            "return sequence(tuple(map(self.of, form.operands)), form.contiguous, form.span)",
            "return sequence(tuple(map(self.of, form.operands[1:])), form.contiguous[1:], "
            "form.span)",
            "by definition",
        ),
    ),
)


@cache
def _text(file: str) -> str:
    return (Path(__file__).parents[2] / file).read_text("utf-8")


def _functions(namespace: dict[str, Any], module: str) -> Iterator[tuple[str, types.FunctionType]]:
    for value in namespace.values():
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            yield value.__qualname__, value
        elif isinstance(value, type) and value.__module__ == module:
            for one in vars(value).values():
                function = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
                if isinstance(function, types.FunctionType) and function.__module__ == module:
                    yield function.__qualname__, function


@contextmanager
def seeded(fault: Fault) -> Iterator[None]:
    """A block in which the loaded passes have a fault."""
    text = _text(fault.file)
    parts = text.split(fault.old)
    if len(parts) < 2 or (len(parts) > 2 and fault.which >= len(parts) - 1):
        raise ValueError(f"there is no such place: {fault}")
    at = fault.which + 1
    changed = fault.old.join(parts[:at]) + fault.new + fault.old.join(parts[at:])
    name = fault.file.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    made: dict[str, Any] = {"__name__": name, "__file__": module.__file__}
    exec(compile(changed, fault.file, "exec"), made)
    new = dict(_functions(made, name))
    before = []
    for qualified, function in _functions(vars(module), name):
        other = new[qualified].__code__
        if (
            other.co_code != function.__code__.co_code
            or other.co_consts != function.__code__.co_consts
            or other.co_names != function.__code__.co_names
        ):
            before.append((function, function.__code__))
            function.__code__ = other
    try:
        yield
    finally:
        for function, code in before:
            function.__code__ = code
