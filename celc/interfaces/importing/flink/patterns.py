"""A pattern of FlinkCEP → the formula of CEL that has the same matches.

A run takes the first event of a node by the edge that leads to it, and the further ones by the
node's own strategy. `SKIP_TILL_NEXT` takes the next event that fits, which is FIRST;
`SKIP_TILL_ANY` any later one, which is `;`; `STRICT` the event directly behind, which is `:`.
"""

from __future__ import annotations

from collections.abc import Sequence

from celc_runtime.plan.frozen import frozen

STRICT, NEXT, ANY, NOT_FOLLOW = "STRICT", "SKIP_TILL_NEXT", "SKIP_TILL_ANY", "NOT_FOLLOW"


@frozen
class Node:
    """One node: the text of one event of it, how often it comes, and how the run gets on in it.

    `edge` leads to it; None for the first node. `most` None: without an end.
    """

    event: str
    least: int
    most: int | None
    consuming: str
    edge: str | None
    is_optional: bool = False

    @property
    def is_single(self) -> bool:
        """Whether one event is taken."""
        return self.least == self.most == 1


def problem_of(node: Node) -> str | None:
    """Why a node cannot be translated; None if it can."""
    if node.edge is None and node.is_optional:
        return "a pattern that begins with an optional node cannot be translated"
    if node.edge == NOT_FOLLOW:
        ok = node.is_single and not node.is_optional
        return None if ok else "an absent node stands for one event"
    if node.is_single:
        if node.is_optional and node.edge != NEXT:
            return "an optional node is translated behind an edge SKIP_TILL_NEXT alone"
        return None
    if node.edge not in (None, node.consuming):
        return (
            f"a node that comes several times by {node.consuming} is translated behind an edge of "
            f"that kind alone, and this one is {node.edge}"
        )
    if node.is_optional:
        return "an optional node that comes several times cannot be translated"
    return None


def formula(nodes: Sequence[Node]) -> str:
    """The text of the formula; no node has a problem."""
    text = _first(nodes[0])
    for node in nodes[1:]:
        if node.edge == NOT_FOLLOW:
            text += f" ; !{node.event}"
        elif node.is_optional:
            text += f" ; (FIRST {node.event})?"
        elif node.is_single:
            text += _BEFORE[node.edge or NEXT] + node.event
        else:
            text += " : " if node.edge == STRICT else " ; "
            text += _repeated(node, node.least, node.most)
    return text


_BEFORE = {STRICT: " : ", NEXT: " ; FIRST ", ANY: " ; "}


def _first(node: Node) -> str:
    if node.is_single:
        return node.event
    if node.consuming != NEXT:
        return _repeated(node, node.least, node.most)
    # FIRST cannot begin a sequence: the first event, and the next ones behind it.
    most = None if node.most is None else node.most - 1
    if node.least > 1:
        return f"{node.event} ; {_repeated(node, node.least - 1, most)}"
    return f"({node.event} OR ({node.event} ; {_repeated(node, 1, most)}))"


def _repeated(node: Node, least: int, most: int | None) -> str:
    """Several events of a node."""
    if most is None:
        times = "+" if least == 1 else f"{{{least},}}"
    else:
        times = f"{{{least}}}" if least == most else f"{{{least},{most}}}"
    if node.consuming != NEXT:
        plain = node.event.startswith("(") or " " not in node.event
        operand = node.event if plain else f"({node.event})"
        return f"{operand}{':' if node.consuming == STRICT else ''}{times}"
    return f"FIRST {node.event}" if least == most == 1 else f"(FIRST {node.event}){times}"
