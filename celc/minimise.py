"""The smallest I/O-deterministic CEA with the same matches (Hopcroft's partition refinement).

Letters are pairs of symbol and label set; acceptance sits on moves, so two states are told apart at
first by what each letter accepts, and then by where it leads. The start keeps a class of its own:
no match ever comes back to it, and its unmarked moves begin matches instead of continuing them.
"""

from __future__ import annotations

from celc.automaton import State
from celc.determinize import START, DeterministicAutomaton, DetState, Move

_Letter = tuple[int, tuple[str, ...]]


def minimise(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Merge the states that no continuation tells apart, numbered in order of first member."""
    block_of = _refine(automaton)
    number: dict[int, DetState] = {}
    for block in block_of:
        number.setdefault(block, DetState(len(number)))
    representative: dict[int, int] = {}
    members: dict[int, set[State]] = {}
    for state, block in enumerate(block_of):
        representative.setdefault(block, state)
        members.setdefault(block, set()).update(automaton.members[state])
    moves = tuple(
        tuple(
            tuple(
                Move(
                    move.marks,
                    move.accepts,
                    None if move.target is None else number[block_of[move.target]],
                )
                for move in row
            )
            for row in automaton.moves[representative[block]]
        )
        for block in number
    )
    return DeterministicAutomaton(
        automaton.symbols,
        moves,
        tuple(tuple(sorted(members[block])) for block in number),
        automaton.class_of,
    )


def _refine(automaton: DeterministicAutomaton) -> list[int]:
    """The class of each state."""
    sources: dict[_Letter, dict[int, list[int]]] = {}
    groups: dict[object, list[int]] = {}
    for state, rows in enumerate(automaton.moves):
        letters = []
        for symbol, row in enumerate(rows):
            for move in row:
                letters.append((symbol, move.marks, move.accepts, move.target is None))
                if move.target is not None:
                    into = sources.setdefault((symbol, move.marks), {})
                    into.setdefault(move.target, []).append(state)
        groups.setdefault((state == START, tuple(letters)), []).append(state)
    blocks = [set(group) for group in groups.values()]
    block_of = [0] * automaton.states
    for index, block in enumerate(blocks):
        for state in block:
            block_of[state] = index
    waiting = list(range(len(blocks)))
    while waiting:
        splitter = frozenset(blocks[waiting.pop()])
        for into in sources.values():
            touched: dict[int, set[int]] = {}
            small = splitter if len(splitter) < len(into) else into
            for target in small:
                if target in splitter:
                    for state in into.get(target, ()):
                        touched.setdefault(block_of[state], set()).add(state)
            for index, inside in touched.items():
                if len(inside) == len(blocks[index]):
                    continue
                outside = blocks[index] - inside
                new, kept = (inside, outside) if len(inside) <= len(outside) else (outside, inside)
                blocks[index] = kept
                blocks.append(new)
                for state in new:
                    block_of[state] = len(blocks) - 1
                # Refining by the smaller half is enough only if the larger one is still to come
                # or has been used before; adding the smaller is right in both cases.
                waiting.append(len(blocks) - 1)
    return block_of
