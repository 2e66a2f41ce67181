"""Straight-line updates → what their template is given: a branch for each symbol, its writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celc.determinize import START
from celc.emit_joins import Branch, JoinCode
from celc.escape import comment_text
from celc.joins import Joins
from celc.piles import PilePlan, Write
from celc.show import show_labels
from celc.tables import Kind

View = dict[str, Any]


def update_view(
    plan: PilePlan,
    kinds: Sequence[Kind],
    joins: Joins | None,
    kind_bits: int,
    symbols: Sequence[str],
) -> View:
    """All that the template of a straight-line update needs; `symbols` are their descriptions."""
    code = None if joins is None else JoinCode(joins, plan, kinds)
    branches: list[View] = []
    for symbol, writes in enumerate(plan.writes):
        if not writes:
            continue
        branch = None if code is None else code.branch(writes)
        keyed = set() if code is None else set(code.columns)
        saved = tuple(pile for pile in plan.saved[symbol] if pile not in keyed)
        views = [
            _write_view(write, kinds, saved, plan, kind_bits, branch, code) for write in writes
        ]
        branches.append(
            {
                "symbol": symbol,
                "comment": symbols[symbol].split("  ", 1)[1],
                "saved": list(saved),
                "lookups": [] if branch is None else branch.lines(),
                "entries": [] if branch is None else branch.entries,
                "writes": views,
            }
        )
    folds = any(len(write.reads) > 1 for writes in plan.writes for write in writes)
    scalar = [p for p in range(len(plan.piles)) if code is None or p not in code.columns]
    view: View = {
        "branches": branches,
        "scalar_piles": scalar,
        "piles": [
            f"{index}  state {pile.target}, from "
            + " or ".join("start" if s == START else f"state {s}" for s in pile.sources)
            + (", only at the next event" if index in plan.fleeting else "")
            + ("" if index in scalar else f", by key in table {code.columns[index][0]}")  # type: ignore[union-attr]
            for index, pile in enumerate(plan.piles)
        ],
        "fleeting": sorted(plan.fleeting),
        "nodes_per_event": plan.nodes_per_event,
        "forget": " = ".join([*(f"since_{pile}" for pile in scalar), "NEVER"]),
        "joins": None,
        "update_names": ["either"] if folds else [],
    }
    if code is not None:
        tables = code.view()
        for table in tables["tables"]:
            number = table["number"]
            table["entries"] = max(branch["entries"][number] for branch in branches)
        view["joins"] = tables
        view["update_names"].append("KEYS_FULL")
    return view


def step_comment(write: Write, kinds: Sequence[Kind]) -> str:
    """What a cell stands for: from which states to which."""
    step = write.step
    sources = ", ".join("start" if s == START else f"state {s}" for s in step.sources)
    target = "match" if step.target is None else f"state {step.target}"
    return f"{sources} --{comment_text(show_labels(kinds[step.kind].marks))}--> {target}"


def _write_view(
    write: Write,
    kinds: Sequence[Kind],
    saved: tuple[int, ...],
    plan: PilePlan,
    kind_bits: int,
    branch: Branch | None,
    code: JoinCode | None,
) -> View:
    step = write.step
    marks = kinds[step.kind].marks

    def end_of(pile: int) -> str:
        """How the names of the variables of a pile that is read end."""
        keyed = None if branch is None else branch.source(pile, marks)
        return str(pile) if keyed is None else keyed

    def head(pile: int) -> str:
        return f"{'old_' if pile in saved else ''}head_{end_of(pile)}"

    def since(pile: int) -> str:
        return f"{'old_' if pile in saved else ''}since_{end_of(pile)}"

    keyed = None if branch is None or write.pile is None else branch.target(write.pile, marks)
    fresh = "fresh_" if write.pile in plan.fleeting else ""
    first = write.reads[0] if write.reads else None
    several = len(write.reads) > 1
    return {
        "comment": step_comment(write, kinds),
        "starts": write.starts,
        "folds": [(head(pile), since(pile)) for pile in write.reads[1:]],
        "first": None if first is None else (head(first), since(first)),
        "child": "child" if several else "0" if first is None else head(first),
        "since": "since" if several else "key" if first is None else since(first),
        "tag": f"entry << {kind_bits} | {step.kind}",
        "pile": write.pile,
        "head": f"{fresh}head_{write.pile}",
        "pile_since": f"{fresh}since_{write.pile}",
        "guard": "" if code is None else code.guard(marks),
        "keyed": keyed,
        "mixes": write.pile is not None and code is not None and code.mixes(write),
        "latest": f"since_{write.pile}" if keyed is None else keyed["latest"],
    }
