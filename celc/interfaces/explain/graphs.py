"""Graphs in Graphviz's language."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from celc.automata.automaton import State
from celc.automata.determinize import START, DeterministicAutomaton, DetState
from celc.codegen.expressions.describe import describe_members, describe_state
from celc.diagnostics.source import visible
from celc.driver.pipeline import Stages
from celc.interfaces.explain.stages import describe_classes, transition_text
from celc.normal.show import show_labels


def automaton_dot(stages: Stages) -> str:
    """The CEA; parallel transitions share an edge."""
    automaton = stages.automaton
    nodes = {
        State(state): (
            "start"
            if state == automaton.initial
            else (
                "match" if state == automaton.final else describe_members(automaton, {State(state)})
            )
        )
        for state in range(automaton.states)
    }
    edges: dict[tuple[object, object], list[str]] = {}
    for transition in automaton.transitions:
        edges.setdefault((transition.source, transition.target), []).append(
            transition_text(automaton, transition)
        )
    return graph_text("cea", nodes, edges, finals={automaton.final})


def deterministic_dot(stages: Stages) -> str:
    """The I/O-deterministic CEA. Waiting is not drawn; a match ends in a double circle."""
    automaton = stages.minimal
    nodes: dict[object, str] = {
        state: describe_state(stages.program, DetState(state)) for state in range(automaton.states)
    }
    nodes["match"] = "match"
    return graph_text("cea", nodes, _edges(stages, automaton), finals={"match"})


def _edges(
    stages: Stages, automaton: DeterministicAutomaton
) -> dict[tuple[object, object], list[str]]:
    edges: dict[tuple[object, object], list[str]] = {}
    events = describe_classes(stages)
    for state, rows in enumerate(automaton.moves):
        for symbol, row in enumerate(rows):
            event = events[symbol]
            for move in row:
                marks = show_labels(move.marks) if move.marks or state == START else "○"
                if move.accepts:
                    edges.setdefault((state, "match"), []).append(f"{event} / {marks}")
                if move.target is not None and (move.marks or move.target != state):
                    edges.setdefault((state, move.target), []).append(f"{event} / {marks}")
    return edges


def graph_text(
    name: str,
    nodes: Mapping[Any, str],
    edges: Mapping[tuple[object, object], list[str]],
    *,
    finals: AbstractSet[object] = frozenset(),
    boxes: AbstractSet[object] = frozenset(),
) -> str:
    """A graph from left to right, with labelled nodes and one line for each text of an edge.

    `finals` have a double border, `boxes` are boxes, other nodes are ellipses.
    """
    lines = [f"digraph {name} {{", "  rankdir=LR;"]
    lines += ['  node [shape=ellipse, fontname="sans-serif"];', '  edge [fontname="sans-serif"];']
    for node, text in nodes.items():
        shape = ", shape=doublecircle" if node in finals else ", shape=box" if node in boxes else ""
        lines.append(f"  {_quoted(str(node))} [label={_quoted(text)}{shape}];")
    for (source, target), texts in edges.items():
        label = "\n".join(texts)
        lines.append(
            f"  {_quoted(str(source))} -> {_quoted(str(target))} [label={_quoted(label)}];"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    lines = [visible(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
