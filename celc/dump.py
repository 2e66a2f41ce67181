"""The stages of a compilation as text, written to be reviewed by a person."""

from __future__ import annotations

from typing import assert_never

from celc import formula as core
from celc.automaton import Automaton, Transition
from celc.determinize import START, DeterministicAutomaton, DetState
from celc.emit import describe_state, describe_symbol
from celc.normal_form import Disjunction, Event, Iteration, NormalForm, Sequence
from celc.pipeline import Stages
from celc.show import show_event, show_labels
from celc.source import visible


def dump_formula(stages: Stages) -> str:
    """The query's clauses as resolved, and its formula in LP-normal form."""
    query = stages.query
    lines = [f"query {query.name}", f"streams: {', '.join(s.name for s in query.streams)}"]
    if query.strategy != "ALL":
        lines.append(f"select: {query.strategy}")
    lines.append("output: " + (", ".join(map(_output_item, query.output)) or "start and end only"))
    if query.partition_by:
        lines.append("partition by: " + ", ".join(a.name for a in query.partition_by))
    if query.window is not None:
        lines.append("window: " + _window(query))
    if query.consume_by != "NONE":
        lines.append(f"consume by: {query.consume_by}")
    if query.limit is not None:
        lines.append(f"limit: {query.limit}")
    if query.order_by:
        lines.append("order: " + ", ".join(f"{a.name} {a.type.value}" for a in query.order_by))
    lines += ["LP-normal form:", *_form_lines(stages.normal_form, "  ")]
    return _text(lines)


def _text(lines: list[str]) -> str:
    """Lines as text; names can hold anything, so what would change a terminal is escaped."""
    return "".join(visible(line) + "\n" for line in lines)


def _output_item(item: core.OutputLabel | core.OutputExpression) -> str:
    if isinstance(item, core.OutputExpression):
        return f"{item.text} AS {item.name}"
    return f"{item.label}[{', '.join(a.name for a in item.attributes)}]"


def _window(query: core.Query) -> str:
    window = query.window
    assert window is not None
    if window.unit is core.WindowUnit.EVENTS:
        return f"{window.size} events"
    attribute = window.attribute or query.order_by[0]
    unit = " microseconds" if window.unit is core.WindowUnit.MICROSECONDS else ""
    return f"{window.size}{unit} on {attribute.name} {attribute.type.value}"


def _form_lines(form: NormalForm, indent: str) -> list[str]:
    match form:
        case Event():
            return [f"{indent}{show_event(form)} {show_labels(form.labels)}"]
        case Iteration():
            sign = ":+" if form.contiguous else "+"
            return [f"{indent}{sign}", *_form_lines(form.operand, indent + "  ")]
        case Disjunction():
            lines = [f"{indent}OR" if form.operands else f"{indent}nothing"]
            for operand in form.operands:
                lines += _form_lines(operand, indent + "  ")
            return lines
        case Sequence():
            lines = [f"{indent}sequence"]
            for index, operand in enumerate(form.operands):
                if index:
                    lines.append(f"{indent}  {':' if form.contiguous[index - 1] else ';'}")
                lines += _form_lines(operand, indent + "  ")
            return lines
        case _:
            assert_never(form)


def dump_automaton(automaton: Automaton) -> str:
    """A CEA, a line for each transition, grouped by the state it leaves."""
    lines = [
        f"complex event automaton: {automaton.states} states, "
        f"{len(automaton.transitions)} transitions",
        f"initial {automaton.initial}, final {automaton.final}",
    ]
    for state in range(automaton.states):
        for transition in automaton.transitions:
            if transition.source == state:
                lines.append(f"  {state} --{transition_text(transition)}--> {transition.target}")
    return _text(lines)


def transition_text(transition: Transition) -> str:
    """A transition's condition and marks: `T[value > 40.0] / {hot}`; ○ is an unmarked event."""
    if transition.event is None:
        return "any / ○"
    return f"{show_event(transition.event)} / {show_labels(transition.marks)}"


def dump_deterministic(stages: Stages) -> str:
    """The I/O-deterministic CEA after minimisation, with its size before."""
    automaton = stages.minimal
    lines = [
        f"I/O-deterministic automaton: {automaton.states} states "
        f"({stages.full.states} before minimisation), {automaton.symbols} symbol classes",
        "symbol classes:",
        *(
            f"  {number}  {describe_symbol(stages.alphabet, symbol)}"
            for number, symbol in enumerate(stages.alphabet.symbols)
        ),
        "states:",
    ]
    for state in range(automaton.states):
        lines.append(f"  {state}  {describe_state(stages.compiled, DetState(state))}")
        lines += [f"      {text}" for text in _move_lines(automaton, DetState(state))]
    return _text(lines)


def _move_lines(automaton: DeterministicAutomaton, state: DetState) -> list[str]:
    by_text: dict[str, list[int]] = {}
    for symbol, row in enumerate(automaton.moves[state]):
        if state != START and not row:
            by_text.setdefault("the match is lost", []).append(symbol)
        for move in row:
            marks = show_labels(move.marks) if move.marks or state == START else "○"
            targets = ["match"] * move.accepts
            targets += [f"state {move.target}"] if move.target is not None else []
            if targets == [f"state {state}"] and not move.marks:
                continue  # what every `;` state does: wait
            by_text.setdefault(f"/ {marks} --> {' and '.join(targets)}", []).append(symbol)
    return [f"{', '.join(map(str, symbols))} {text}" for text, symbols in by_text.items()]


def dump_tables(stages: Stages) -> str:
    """The transition tables, and how the update will be written."""
    tables, plan = stages.compiled.tables, stages.compiled.straight_line
    lines = [
        f"{tables.states} states, {tables.symbols} symbols",
        "symbol of each class: " + " ".join(map(str, tables.symbol_of)),
        "kinds of cells:",
        *(
            f"  {number}  {show_labels(kind.marks)}{' first' if kind.starts else ''}"
            for number, kind in enumerate(tables.kinds)
        ),
        "steps (symbol: sources --kind--> target):",
    ]
    for symbol, steps in enumerate(tables.steps):
        for step in steps:
            sources = " ".join("start" if s == START else str(s) for s in step.sources)
            target = "match" if step.target is None else step.target
            lines.append(f"  {symbol}: {sources} --{step.kind}--> {target}")
    if tables.skips_are_identities:
        lines.append("unmarked events leave every state as it is")
    else:
        lines.append("state after an unmarked event, by state and symbol (. lost):")
        for state in range(1, tables.states):
            row = ["." if target is None else str(target) for target in tables.skip[state]]
            lines.append(f"  {state}: {' '.join(row)}")
    if plan is None:
        lines.append("update: general engine, union lists")
    else:
        lines.append(f"update: straight-line code, {len(plan.piles)} piles:")
        lines += [
            f"  {number}  state {pile.target} from "
            + " ".join("start" if s == START else str(s) for s in pile.sources)
            for number, pile in enumerate(plan.piles)
        ]
    return _text(lines)
