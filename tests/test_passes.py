"""Each pass by itself: a file of inputs, each with the output as it was reviewed.

`tests/fixtures/<stage>/<pass>.txt` mirrors the folders of celc and holds blocks: `#` lines that say
the point, the query (declarations of `declarations.cel` come before it), a blank line, and the
output, indented. `make golden` writes the outputs anew; read the difference before you commit. The
idea is sqlglot's `fixtures/optimizer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from celc_runtime.plan.strategy import Latest
from places import ROOT, TESTS

from celc.automata.construct import construct_selection
from celc.automata.determinize import START, DetState
from celc.codegen.expressions.describe import describe_members
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.interfaces.explain import passes as dump_passes
from celc.interfaces.explain.stages import (
    automaton_lines,
    dump_deterministic,
    form_lines,
    move_lines,
    table_lines,
    text_of,
)
from celc.interfaces.explain.trees import tree_text
from celc.normal.divide import Definitions, Exact, Rest, Roles, Windowed
from celc.normal.flat_form import NotFlat
from celc.normal.flatten import flatten
from celc.normal.normal_form import Relabel, Selected
from celc.normal.relax import relaxed
from celc.normal.show import show_labels
from celc.normal.traversal import is_correlated
from celc.options import Options
from celc.parse.parser import parse
from celc.plan.straight_line.shapes import fixed_shape
from celc.plan.strategy import EarliestInWindow, Keyed, UnionLists
from celc.resolve.first_order.reader import read_first_order
from celc.resolve.resolver import resolve

_FOLDER = TESTS / "fixtures"
_DECLARATIONS = (_FOLDER / "declarations.cel").read_text("utf-8")


@dataclass(frozen=True)
class Block:
    """One input of a pass: why it is there, its query, and the output that was reviewed."""

    point: str
    query: str
    output: str

    def text(self) -> str:
        """The block as it stands in the file."""
        point = "".join(f"# {line}\n" for line in self.point.splitlines())
        lines = (f"  {line}".rstrip() + "\n" for line in self.output.splitlines())
        return f"{point}{self.query}\n\n{''.join(lines)}"


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a fixture file."""
    for part in text.split("\n\n# "):
        lines = part.removeprefix("# ").split("\n")
        end = next(n for n, line in enumerate(lines) if n and not line.startswith("# "))
        blank = lines.index("", end)
        point = "\n".join(line.removeprefix("# ") for line in lines[:end])
        output = "".join(line.removeprefix("  ") + "\n" for line in lines[blank + 1 :] if line)
        yield Block(point, "\n".join(lines[end:blank]), output)


def _source(query: str) -> Source:
    return Source("q.cel", f"{_DECLARATIONS}{query}")


def _compiled(query: str) -> Stages:
    (stages,) = compile_source(_source(query), Options()).queries
    return stages


# --- passes ---------------------------------------------------------------------------------------


def _parse(query: str) -> str:
    (tree,) = parse(_source(query)).queries
    return tree_text(tree)


def _resolve(query: str) -> str:
    (resolved,), warnings = resolve(parse(_source(query)), _source(query))
    text = tree_text(
        resolved,
        without=("name", "streams", "needs_type_column", "needs_stream_column", "strategy_span"),
    )
    return text + "".join(f"warning[{found.code}]\n" for found in warnings)


def _first_order(query: str) -> str:
    source = _source(query)
    queries, warnings = resolve(parse(source), source)
    (safe,), warnings = read_first_order(queries, warnings, source)
    return tree_text(safe.formula) + "".join(f"warning[{found.code}]\n" for found in warnings)


def _divide(query: str) -> str:
    division = _compiled(query).division
    lines = [f"left to the listing: {_rest(division.rest)}"]
    if division.asked == division.found:
        lines += ["found and asked:", *form_lines(division.found)]
    else:
        lines += ["found:", *form_lines(division.found), "asked:", *form_lines(division.asked)]
    return text_of(lines)


def _rest(rest: Rest) -> str:
    match rest:
        case Exact():
            return "nothing"
        case Windowed(selected):
            return f"{selected.strategy} in the window"
        case Roles(_, selector):
            return f"roles, then {selector}" if selector else "roles"
        case Definitions(sees_all=sees_all):
            return "the definition, which sees all events" if sees_all else "the definition"


def _flatten(query: str) -> str:
    form = _compiled(query).normal_form
    if isinstance(form, Relabel) and isinstance(form.operand, Selected):
        form = form.operand.operand
    flat = flatten(form)
    return (
        "left to the definition\n"
        if isinstance(flat, NotFlat)
        else dump_passes.dump_flat_form(flat)
    )


def _select(query: str) -> str:
    stages = _compiled(query)
    form = stages.normal_form
    assert isinstance(form, Relabel), "the block begins with SELECT and a selector"
    assert isinstance(form.operand, Selected)
    selection, letters = construct_selection(form.operand, stages.alphabet, _source(query))
    return dump_passes.dump_selection(selection, letters)


def _determinize(query: str) -> str:
    stages = _compiled(query)
    lines = [f"{stages.full.states} states, {stages.full.symbols} symbol classes"]
    for state, members in enumerate(stages.full.members):
        look()
        name = "start" if state == START else describe_members(stages.automaton, set(members))
        lines.append(f"{state}  {name}; of {', '.join(map(str, members))}")
        lines += [f"  {text}" for text in move_lines(stages.full, DetState(state))]
    return text_of(lines)


def _straight_line(query: str) -> str:
    program = _compiled(query).program
    plan = None if isinstance(program.update, UnionLists) else program.update.piles
    if plan is None:
        return f"the general engine: {program.update.reason}\n"
    shape = fixed_shape(plan)
    kinds = (
        [] if shape is None else [show_labels(program.tables.kinds[k].marks) for k in shape.kinds]
    )
    return dump_passes.dump_straight_line(plan) + (
        f"all matches have one shape: {' '.join(kinds)}\n" if kinds else ""
    )


def _earliest(query: str) -> str:
    listing = _compiled(query).program.listing
    if not isinstance(listing, EarliestInWindow):
        way = "latest first" if isinstance(listing, Latest) else "run forward"
        return f"not by sets of states: {way}\n"
    return dump_passes.dump_earliest(listing.tables)


def _choose(query: str) -> str:
    program = _compiled(query).program
    why_run, why_listed = program.update.reason, program.listed_because
    chosen = ((program.update, why_run), (program.listing, why_listed))
    return text_of(f"{type(one).__name__}: {why}" for one, why in chosen)


def _keys(query: str) -> str:
    update = _compiled(query).program.update
    return dump_passes.dump_keys(update.keys) if isinstance(update, Keyed) else "no keys\n"


_PASSES: dict[str, Callable[[str], str]] = {
    "parse/parse": _parse,
    "resolve/resolve": _resolve,
    "resolve/first_order": _first_order,
    "normal/normalize": lambda query: dump_passes.dump_form(_compiled(query).normal_form),
    "normal/divide": _divide,
    "normal/flatten": _flatten,
    "normal/relax": lambda query: dump_passes.dump_form(relaxed(_compiled(query).normal_form)),
    "automata/alphabet": lambda query: dump_passes.dump_alphabet(_compiled(query).alphabet),
    "automata/construct": lambda query: text_of(automaton_lines(_compiled(query).automaton)),
    "automata/select": _select,
    "automata/determinize": _determinize,
    "automata/minimise": lambda query: dump_deterministic(_compiled(query)),
    "plan/tabulate": lambda query: text_of(table_lines(_compiled(query).program.tables)),
    "plan/straight_line": _straight_line,
    "plan/keys": _keys,
    "plan/earliest": _earliest,
    "plan/choose": _choose,
}


@pytest.mark.parametrize("name", _PASSES)
def test_golden_fixtures(name: str, update: bool) -> None:
    path = _FOLDER / f"{name}.txt"
    written = path.read_text("utf-8")
    blocks = list(blocks_of(written))
    made = [Block(block.point, block.query, _PASSES[name](block.query)) for block in blocks]
    text = "\n".join(block.text() for block in made)
    if update:
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    for block, now in zip(blocks, made, strict=True):
        assert now.output == block.output, block.point
    assert text == written, f"{path.name} is not laid out as `make golden` does"
    assert len(blocks) >= 5


def test_every_fixture_is_used() -> None:
    assert {
        path.relative_to(_FOLDER).with_suffix("").as_posix() for path in _FOLDER.glob("*/**/*.txt")
    } == {*_PASSES}


def test_fixtures_mirror_the_stages() -> None:
    assert all((ROOT / "celc" / name.partition("/")[0]).is_dir() for name in _PASSES)


def test_relaxed_inputs_are_correlated() -> None:
    """A form without correlation is its own relaxation, and shows nothing."""
    blocks = blocks_of((_FOLDER / "normal" / "relax.txt").read_text("utf-8"))
    assert all(is_correlated(_compiled(block.query).normal_form) for block in blocks)


def test_blocks_are_read_as_they_are_written() -> None:
    block: Any = Block("why\nand how", "SELECT *\nFROM S WHERE A", "one\n  two\n")
    assert list(blocks_of(block.text() + "\n" + block.text())) == [block, block]
