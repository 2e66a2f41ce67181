"""Faults for passes, templates and the runtime, each one edit of a file; and queries to prove.

Run as a program it proves the code of all queries, with the celc that is on the path, until a step
is wrong, and prints it: `python tests/prove/faults.py`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GENERATED = Path(__file__).parents[2] / "generated"


class Fault(NamedTuple):
    """`old` in a file of the repository becomes `new`, once."""

    name: str
    file: str
    old: str
    new: str


_TABLES = "celc/plan/tables.py"
_PILES = "celc/plan/straight_line/piles.py"
_STRAIGHT = "celc/codegen/updates/straight_line.py"
_FLAT = "celc/codegen/updates/branch_free.py"
_KEYS = "celc/codegen/updates/key_lookups.py"
_BOUNDS = "celc/codegen/updates/pile_bounds.py"
_IN_TEXT = "celc/codegen/updates/tables.py"
_PLAN = "celc/codegen/plan_of.py"
_CHECKS = "celc/codegen/correlated/checks.py"
_OF_LINES = "templates/straight_line_update.py.jinja"
_OF_ROWS = "templates/branch_free_update.py.jinja"
_WALK = "runtime/celc_runtime/engine/walk/"

FAULTS = (
    # --- tables
    Fault(
        "an event that passes never loses a match",
        _TABLES,
        "found[id(row)] = DetState(state) if state in passed else next(iter(passed), None)",
        "found[id(row)] = DetState(state)",
    ),
    Fault(
        "a move that ends a match and goes on only ends it",
        _TABLES,
        "if move.target is not None and not (passes and",
        "if move.target is not None and not move.accepts and not (passes and",
    ),
    Fault(
        "every kind begins a match",
        _TABLES,
        "Kind(marks, START in sources), len(kinds)",
        "Kind(marks, True), len(kinds)",
    ),
    Fault(
        "a mark is dropped",
        _TABLES,
        "Step(_number(kinds, marks, grouped[key]), tuple(grouped[key]), target)",
        "Step(_number(kinds, marks[:1], grouped[key]), tuple(grouped[key]), target)",
    ),
    Fault(
        "contexts never change",
        _TABLES,
        "tuple(tuple(row[symbol] for symbol in first) for row in machine.following)",
        "tuple((row[first[0]],) * len(first) for row in machine.following)",
    ),
    Fault(
        "places in instants are exchanged",
        _TABLES,
        "instants=tuple(zip(*numbers, strict=True)))",
        "instants=tuple(zip(*numbers, strict=True))[::-1])",
    ),
    # --- piles
    Fault(
        "matches that are lost stay",
        _PILES,
        "                yield Removal(number, None)",
        "                continue",
    ),
    Fault(
        "matches that move are lost",
        _PILES,
        "yield Removal(number, piles[Pile(target, (pile.target,), clock, moved=True)])",
        "yield Removal(number, None)",
    ),
    Fault(
        "a cell that ends a match is made of one pile fewer",
        _PILES,
        "yield Write(step, START in step.sources, tuple(reads), None)",
        "yield Write(step, START in step.sources, tuple(reads[:-1] or reads), None)",
    ),
    Fault(
        "piles are written before they are read",
        _PILES,
        "return tuple(ordered), tuple(sorted(saved))",
        "return tuple(writes), ()",
    ),
    Fault(
        "an event leaves nothing although it begins a match",
        _PILES,
        "return bool(lost) and not filled and lost",
        "return bool(lost) and lost",
    ),
    Fault(
        "states that last for one event last",
        _PILES,
        "fleeting = frozenset(n for pile, n in piles.items() if states.is_fleeting(pile.target))",
        "fleeting = frozenset[int]()",
    ),
    Fault(
        "passing states keep what the state behind them has",
        "celc/plan/straight_line/passing.py",
        "left = [source for source in step.sources if passes.get(source) not in known]",
        "left = [*step.sources]",
    ),
    # --- straight-line code
    Fault(
        "the edge of the window is outside",
        _STRAIGHT,
        '[f"{since} >= earliest"]',
        '[f"{since} > earliest"]',
    ),
    Fault(
        "a match that begins starts when what it goes on from did",
        _STRAIGHT,
        'begin = "key" if write.starts else since',
        'begin = since if write.reads else "key"',
    ),
    Fault(
        "a cell names the event before",
        _STRAIGHT,
        'tag = f"entry << {self.given.kind_bits} | {write.step.kind}"',
        'tag = f"entry - 1 << {self.given.kind_bits} | {write.step.kind}"',
    ),
    Fault(
        "the second of two piles is left out",
        _STRAIGHT,
        "for other in sources[1:]:",
        "for other in sources[2:]:",
    ),
    Fault(
        "a saved pile is read late",
        _STRAIGHT,
        'old = "old_" if pile in self.saved else ""',
        'old = ""',
    ),
    Fault(
        "floor and lowest of a match that ends are exchanged",
        _OF_LINES,
        "fire[0], fire[1], fire[2], fire[3] = fired, row, lowest, earliest",
        "fire[0], fire[1], fire[2], fire[3] = fired, row, earliest, lowest",
    ),
    Fault(
        "neighbours are events with one between them",
        _OF_LINES,
        "if row != last + 1:",
        "if row > last + 2:",
    ),
    Fault(
        "a match does not consume",
        _OF_LINES,
        "                {% if consumes %}\n                lowest = next_node\n",
        "                {% if consumes %}\n",
    ),
    Fault(
        "the latest start of a pile is not kept",
        _OF_LINES,
        "heads[0, {{ pile }}], heads[1, {{ pile }}] = head_{{ pile }}, since_{{ pile }}",
        "heads[0, {{ pile }}] = head_{{ pile }}",
    ),
    # --- branch-free code
    Fault(
        "the edge of the window is outside, without branches",
        _FLAT,
        "live = np.uint64({cell.number(base)}), -np.int64(since_{at} >= earliest)",
        "live = np.uint64({cell.number(base)}), -np.int64(since_{at} > earliest)",
    ),
    Fault(
        "no cell begins a match",
        _FLAT,
        "pile, write.step.kind, -write.starts, -(write.pile is None)]",
        "pile, write.step.kind, 0, -(write.pile is None)]",
    ),
    Fault(
        "two columns of a row are exchanged",
        _FLAT,
        "return [*reads, pile, write.step.kind,",
        "return [*reads, write.step.kind, pile,",
    ),
    Fault(
        "a partition keeps the cells of the one before",
        _OF_ROWS,
        "                    lowest = next_node\n                    heads",
        "                    heads",
    ),
    Fault(
        "room for one node fewer",
        _FLAT,
        "bound=plan.nodes_per_event + (len(cells) > 1),",
        "bound=max(1, plan.nodes_per_event - 1),",
    ),
    # --- windows
    Fault(
        "a window of one event fewer",
        "celc/codegen/updates/window.py",
        'f"earliest = key - {self.size}"',
        'f"earliest = key - {self.size} + 1"',
    ),
    Fault(
        "room is freed that a window needs",
        "celc/codegen/updates/window.py",
        'return WindowCode("EVENTS", size, f"earliest + {size}" if size else "earliest")',
        'return WindowCode("EVENTS", size, "earliest")',
    ),
    Fault(
        "a window of time is one unit longer",
        "celc/codegen/updates/window.py",
        "size = math.floor(window.size)",
        "size = math.floor(window.size) + 1",
    ),
    # --- keys and bounds
    Fault(
        "NULL is a key",
        _KEYS,
        'return " and ".join(f"known[{self.term_of(tie, marks)}, row]" for tie in ties)',
        'return ""',
    ),
    Fault(
        "an absence with a key takes nothing away",
        _KEYS,
        "        if not self._removals:",
        "        if self._removals:",
    ),
    Fault(
        "a pile is passed over by a bound that admits",
        _BOUNDS,
        'compared = "<" if self.bounds.pairings[bound].strict else "<="',
        'compared = ">"',
    ),
    Fault(
        "the older bounds are forgotten too early",
        _BOUNDS,
        '"if earliest > turned:',
        '"if earliest >= turned:',
    ),
    Fault(
        "an event brings no bound",
        _BOUNDS,
        'values = [f"bound_{number}"]',
        "values = [least]",
    ),
    # --- tables in the text
    Fault(
        "matches do not end in the tables of a module",
        _IN_TEXT,
        "(source - 1, symbol, step.kind, int(step.target is None),",
        "(source - 1, symbol, step.kind, 0,",
    ),
    Fault(
        "what loses a match passes it, in the tables of a module",
        _IN_TEXT,
        "tuple(-1 if target is None else target - 1 for target in row) for row in tables.skip[1:]",
        "tuple(n if t is None else t - 1 for t in row) for n, row in enumerate(tables.skip[1:])",
    ),
    # --- plan
    Fault(
        "a label is called single that is not",
        _PLAN,
        "single = single_labels(program.tables)",
        "single = frozenset(output_labels(program.query))",
    ),
    Fault(
        "the last label of an event is lost",
        _PLAN,
        "tuple(sorted(column_of[mark] for mark in kind.marks if mark in column_of)),",
        "tuple(sorted(column_of[mark] for mark in kind.marks if mark in column_of))[:1],",
    ),
    # --- conditions
    Fault(
        "equal numbers are greater",
        "celc/codegen/expressions/operations.py",
        'return imports.call("less_real", right, left)',
        "return f\"(not {imports.call('less_real', left, right)})\"",
    ),
    Fault(
        "a constant is compared with what is equal to it",
        "celc/codegen/expressions/operations.py",
        '        case "<":\n            return imports.call("less_real", left, right)',
        '        case "<":\n            return imports.call("less_real", right, left)',
    ),
    Fault(
        "a condition is not checked from one of its events",
        _CHECKS,
        "for pivot, role in enumerate(clause.clause.labels):",
        "for pivot, role in [*enumerate(clause.clause.labels)][1:]:",
    ),
    # --- walks and folds
    Fault(
        "the walk does not go on at the edge of the window",
        _WALK + "walk.py",
        "goes_on = following >= lowest and nodes[following & mask, SINCE] >= floor_value",
        "goes_on = following >= lowest and nodes[following & mask, SINCE] > floor_value",
    ),
    Fault(
        "the walk does not enter at the edge of the window",
        _WALK + "walk.py",
        "child >= lowest and nodes[child & mask, SINCE] >= floor_value",
        "child >= lowest and nodes[child & mask, SINCE] > floor_value",
    ),
    Fault(
        "matches in runs lose the oldest one",
        _WALK + "runs.py",
        "left = source - max(first, marks[source, 2] - base) + 1",
        "left = max(1, source - max(first, marks[source, 2] - base))",
    ),
    Fault(
        "matches in runs go on behind an event that empties",
        _WALK + "runs.py",
        "left = source - max(first, marks[source, 2] - base) + 1",
        "left = source - first + 1",
    ),
    Fault(
        "a match begins at the edge of the window, not in union lists",
        "runtime/celc_runtime/engine/update/union_lists.py",
        "floor_value = position - size",
        "floor_value = position - size + 1",
    ),
    Fault(
        "union lists pass on to the wrong state",
        "runtime/celc_runtime/engine/update/union_lists.py",
        "        target = tables.skip[state, symbol]\n        if target >= 0:",
        "        target = np.int64(state)\n        if target >= 0:",
    ),
    Fault(
        "the latest walk stops at the edge of the window",
        _WALK + "latest_walk.py",
        "if node < lowest or nodes[at, SINCE] < floor_value:",
        "if node < lowest or nodes[at, SINCE] <= floor_value:",
    ),
    Fault(
        "a count of matches leaves out cells beside",
        "runtime/celc_runtime/engine/graph/match_count.py",
        "            if after >= 0:\n                first, second = add",
        "            if after > 0:\n                first, second = add",
    ),
    Fault(
        "totals add the start of a match twice",
        "runtime/celc_runtime/engine/totals/kernel.py",
        "top += np.int64(changes.begins[symbol])",
        "top += np.int64(changes.begins[symbol]) & np.int64(top == 0)",
    ),
)

_STREAM = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, ts: LONG }, EVENT B { id: INT, v: DOUBLE, ts: LONG },
  EVENT C { id: INT, v: DOUBLE, ts: LONG }, EVENT D { id: INT, v: DOUBLE, ts: LONG }
}
"""

QUERIES = (
    "SELECT * FROM S WHERE A ; B WITHIN 5 EVENTS CONSUME BY ANY",
    "SELECT * FROM S WHERE A ; B ; C PARTITION BY id WITHIN 4 [ts]",
    "SELECT * FROM S WHERE A : B+ ; C WITHIN 6 EVENTS CONSUME BY ANY",
    "SELECT * FROM S WHERE (A ; !(B ; C) ; D) WITHIN 8 EVENTS",
    "SELECT * FROM S WHERE (A ; C) UNLESS (B : C)",
    "SELECT * FROM S WHERE A : (B ; C):+ ; D WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE (A AS x ; (B AS y)+ ; C AS z) FILTER y.v > PREV(y.v) AND z.id = x.id",
    "SELECT a FROM S WHERE (A AS a)+ ; (B OR C) WITHIN 5 EVENTS LIMIT 2",
    "SELECT LAST * FROM S WHERE A+ ; B WITHIN 4 EVENTS",
    "SELECT * FROM S WHERE (A AS a ; !(C AS c FILTER c.id = a.id) ; B AS b) FILTER a.id = b.id",
    "SELECT TOTAL COUNT(*) AS n FROM S WHERE A+ ; B WITHIN 5 EVENTS PER END",
    "SELECT COLLAPSED * FROM S WHERE A+ ; B WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A+ WITHIN 3 EVENTS",
    "SELECT * FROM S WHERE A ; !B ; C ; D WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE A ; FIRST B ; C WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE A ; !A ; B WITHIN 5 EVENTS",
    "SELECT * FROM S WHERE A ; FIRST B : C WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE (A AS x AND (A AS y OR B AS y)) ; C AS x WITHIN 5 EVENTS",
)
"""Besides those in `generated`: CONSUME BY, parts, windows of both kinds, moves, folds."""

IN_INSTANTS = (
    "SELECT * FROM S WHERE A ; !B ; C",
    "SELECT * FROM S WHERE (A ALL B) ; A",
    "SELECT * FROM S WHERE A ; A ; B WITHIN 5 [ts]",
)
"""Queries over simultaneous events."""


def wrong_steps() -> Iterator[str]:
    """The wrong steps of all queries, in words."""
    from celc.diagnostics.source import Source
    from celc.driver.matcher import Matcher
    from celc.driver.pipeline import compile_source
    from celc.driver.proof_runs import listed_by, symbols_by
    from celc.driver.proving import representations
    from celc.options import Options
    from celc.verify.prove.code.classes_step import classes_step
    from celc.verify.prove.code.steps import CODE_STEPS, listing_step

    given = [(_STREAM + one, Options(order_by=("ts",))) for one in QUERIES]
    given += [(_STREAM + one, Options(("ts",), ties="simultaneous")) for one in IN_INSTANTS]
    given += [(one.read_text("utf-8"), Options()) for one in sorted(GENERATED.glob("*.cel"))]
    compiled = []
    for number, (text, options) in enumerate(given):
        compilation = compile_source(Source(f"q{number}.cel", text), options)
        module = "".join(compilation.module_parts("celc compile"))
        compiled += list(representations(compilation, module))
    for found in compiled:
        for step in CODE_STEPS:
            verdict = step(found)
            if verdict.kind == "wrong":
                yield f"{found.query.name}: {verdict.step}: {verdict.counterexample}"
    for found in compiled:
        query = Matcher(found.module).queries[found.query.name]
        for verdict in (
            classes_step(found, symbols_by(query)),
            listing_step(found, listed_by(query)),
        ):
            if verdict.kind == "wrong":
                yield f"{found.query.name}: {verdict.step}: {verdict.counterexample}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(ascii(next(wrong_steps(), "")))
    sys.exit(0)
