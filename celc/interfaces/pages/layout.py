"""A layered drawing of a graph, from left to right: Sugiyama's method, in four steps.

- Cycles are cut at the edges by which a depth-first search leads back.
- Each node is put on the layer of its longest path.
- Each layer is ordered by barycentres, forwards and backwards; the best order is kept.
- Nodes move to the middle of their neighbours, as far as the order leaves room.

An edge has a node of its own between two layers, as large as its label. So labels cover neither
each other nor nodes. Rejected: labels put on finished lines, because free places must then be
searched for.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from celc_runtime.plan.frozen import frozen

BETWEEN = 18.0  # the least space between two nodes of a layer

GAP = 26.0  # the space between two layers

_SWEEPS = 12
_MOVES = 12


@frozen
class Size:
    """The width and height of a node, or of a label."""

    width: float
    height: float


@frozen
class Arrow:
    """An edge to draw, with the size of its label."""

    source: int
    target: int
    label: Size


@frozen
class Drawing:
    """Where everything is drawn.

    An arrow's line goes through its points; its label stands at point number `labels`. A loop has
    three points above its node.
    """

    width: float
    height: float
    nodes: tuple[tuple[float, float], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    labels: tuple[tuple[float, float], ...]


@dataclass(slots=True)
class _Part:
    """A node of the layered graph: a node, a label, or a bend of a line."""

    layer: int
    size: Size
    above: float = 0.0
    y: float = 0.0


def laid_out(nodes: Sequence[Size], arrows: Sequence[Arrow], first: int = 0) -> Drawing:
    """A drawing of a graph with the node `first` on the left."""
    forward = _without_circles(len(nodes), arrows, first)
    layers = _layers(len(nodes), forward)
    parts = [_Part(2 * layers[number], size) for number, size in enumerate(nodes)]
    loops: dict[int, list[int]] = defaultdict(list)
    chains: dict[int, list[int]] = {}
    for number, arrow in enumerate(arrows):
        if arrow.source == arrow.target:
            loops[arrow.source].append(number)
            node = parts[arrow.source]
            node.above += arrow.label.height + 22
            continue
        chains[number] = _chain(parts, forward[number], arrow)
    down: dict[int, list[int]] = defaultdict(list)
    up: dict[int, list[int]] = defaultdict(list)
    for chain in chains.values():
        for one, other in pairwise(chain):
            down[one].append(other)
            up[other].append(one)
    order = _ordered(parts, down, up)
    _placed(parts, order, down, up)
    return _drawing(parts, order, arrows, chains, loops, len(nodes))


def _without_circles(nodes: int, arrows: Sequence[Arrow], first: int) -> dict[int, tuple[int, int]]:
    """The ends of each arrow that is not a loop; an edge that closes a cycle is turned round."""
    out: dict[int, list[int]] = defaultdict(list)
    for number, arrow in enumerate(arrows):
        if arrow.source != arrow.target:
            out[arrow.source].append(number)
    found: dict[int, tuple[int, int]] = {}
    done: set[int] = set()
    open_: set[int] = set()
    for root in (first, *range(nodes)):
        if root in done or root in open_:
            continue
        open_.add(root)
        stack = [(root, iter(out[root]))]
        while stack:
            node, left = stack[-1]
            number = next(left, -1)
            if number < 0:
                stack.pop()
                open_.discard(node)
                done.add(node)
                continue
            target = arrows[number].target
            found[number] = (target, node) if target in open_ else (node, target)
            if target not in done and target not in open_:
                open_.add(target)
                stack.append((target, iter(out[target])))
    return found


def _layers(nodes: int, forward: Mapping[int, tuple[int, int]]) -> list[int]:
    targets: dict[int, list[int]] = defaultdict(list)
    waits = [0] * nodes
    for source, target in forward.values():
        targets[source].append(target)
        waits[target] += 1
    layers = [0] * nodes
    free = [node for node in range(nodes) if not waits[node]]
    while free:
        node = free.pop()
        for target in targets[node]:
            layers[target] = max(layers[target], layers[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                free.append(target)
    return layers


def _chain(parts: list[_Part], ends: tuple[int, int], arrow: Arrow) -> list[int]:
    """The parts of a line from end to end: its label in the first gap, and bends from there on."""
    source, target = ends
    chain = [source]
    for layer in range(parts[source].layer + 1, parts[target].layer):
        size = arrow.label if layer == parts[source].layer + 1 else Size(0, 4)
        chain.append(len(parts))
        parts.append(_Part(layer, size))
    return [*chain, target]


def _ordered(
    parts: Sequence[_Part], down: Mapping[int, list[int]], up: Mapping[int, list[int]]
) -> list[list[int]]:
    """The parts of each layer from top to bottom, ordered so that few lines cross."""
    order: list[list[int]] = [[] for _ in range(1 + max((p.layer for p in parts), default=0))]
    for number, part in enumerate(parts):
        order[part.layer].append(number)
    best, fewest = [list(layer) for layer in order], _crossings(order, down)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        places = range(1, len(order)) if forward else range(len(order) - 2, -1, -1)
        for place in places:
            neighbours = up if forward else down
            beside = order[place - 1 if forward else place + 1]
            at = {number: n for n, number in enumerate(beside)}
            middle = {}
            for n, number in enumerate(order[place]):
                near = [at[other] for other in neighbours[number] if other in at]
                middle[number] = sum(near) / len(near) if near else float(n)
            order[place].sort(key=middle.__getitem__)
        found = _crossings(order, down)
        if found < fewest:
            best, fewest = [list(layer) for layer in order], found
    return best


def _crossings(order: Sequence[Sequence[int]], down: Mapping[int, list[int]]) -> int:
    count = 0
    for layer, below in pairwise(order):
        at = {number: n for n, number in enumerate(below)}
        ends: list[int] = []
        for number in layer:
            mine = sorted(at[other] for other in down[number])
            count += sum(1 for one in mine for other in ends if other > one)
            ends += mine
    return count


def _placed(
    parts: list[_Part],
    order: Sequence[Sequence[int]],
    down: Mapping[int, list[int]],
    up: Mapping[int, list[int]],
) -> None:
    """Give each part its height, near the middle of its neighbours."""
    for layer in order:
        y = 0.0
        for number in layer:
            y += parts[number].above + parts[number].size.height / 2
            parts[number].y = y
            y += parts[number].size.height / 2 + BETWEEN
    for turn in range(_MOVES):
        for layer in order if turn % 2 == 0 else reversed(order):
            wanted = []
            for number in layer:
                near = [parts[other].y for other in (*up[number], *down[number])]
                wanted.append(sum(near) / len(near) if near else parts[number].y)
            for number, y in zip(layer, _apart(parts, layer, wanted), strict=True):
                parts[number].y = y


def _apart(parts: Sequence[_Part], layer: Sequence[int], wanted: Sequence[float]) -> list[float]:
    """Heights as near to the wanted ones as order and spacing allow.

    Neighbours that are too near join a block. A block stands at the mean of what its parts want.
    """
    blocks: list[tuple[float, int]] = []  # the sum of wishes for the block's top, and its size
    offsets: list[float] = []
    offset = 0.0
    for place, number in enumerate(layer):
        if place:
            offset += _room(parts[layer[place - 1]], parts[number])
        offsets.append(offset)
    for place, wish in enumerate(wanted):
        blocks.append((wish - offsets[place], 1))
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            total, size = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + size)
    found = [_mean(block) for block in blocks for _ in range(block[1])]
    return [top + offset for top, offset in zip(found, offsets, strict=True)]


def _mean(block: tuple[float, int]) -> float:
    return block[0] / block[1]


def _room(one: _Part, other: _Part) -> float:
    return one.size.height / 2 + BETWEEN + other.above + other.size.height / 2


def _drawing(
    parts: Sequence[_Part],
    order: Sequence[Sequence[int]],
    arrows: Sequence[Arrow],
    chains: Mapping[int, list[int]],
    loops: Mapping[int, list[int]],
    nodes: int,
) -> Drawing:
    top = min((p.y - p.above - p.size.height / 2 for p in parts), default=0.0)
    bottom = max((p.y + p.size.height / 2 for p in parts), default=0.0)
    widths = [max((parts[n].size.width for n in layer), default=0.0) for layer in order]
    # A loop's label may be wider than its node.
    for node, numbers in loops.items():
        wide = max(arrows[number].label.width for number in numbers)
        widths[parts[node].layer] = max(widths[parts[node].layer], wide)
    middle, x = [], 0.0
    for width in widths:
        middle.append(x + width / 2)
        x += width + GAP

    def at(number: int) -> tuple[float, float]:
        return middle[parts[number].layer], parts[number].y - top

    lines: list[tuple[tuple[float, float], ...]] = []
    labels: list[tuple[float, float]] = []
    raised: dict[int, float] = defaultdict(float)
    for number, arrow in enumerate(arrows):
        if number in chains:
            points = [at(part) for part in chains[number]]
            labels.append(points[1])
            lines.append(tuple(points if chains[number][0] == arrow.source else points[::-1]))
            continue
        node_x, node_y = at(arrow.source)
        edge = node_y - parts[arrow.source].size.height / 2 - raised[arrow.source]
        raised[arrow.source] += arrow.label.height + 22
        labels.append((node_x, edge - 18 - arrow.label.height / 2))
        lines.append(((node_x - 14, edge), (node_x, edge - 16), (node_x + 14, edge)))
    return Drawing(
        max(0.0, x - GAP), bottom - top, tuple(map(at, range(nodes))), tuple(lines), tuple(labels)
    )
