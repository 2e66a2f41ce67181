"""The smallest I/O-deterministic CEA with the same matches (Hopcroft's partition refinement).

Letters are pairs of symbol and label set. Moves accept, not states. So two states are separated
first by the letters that accept, then by the targets of letters. The start has its own class: no
match ever comes back to it, and its unmarked moves begin matches instead of continuing them.
"""

from celc.automata.automaton import State
from celc.automata.determinize import START, DeterministicAutomaton, DetState, Move
from celc.diagnostics.deadline import look

_Into = tuple[int, tuple[str, ...], int]
"""A move into a state: its source, its marks, and its symbols, as a bit set."""


def minimise(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Merge the states that no continuation distinguishes, numbered in order of first member."""
    block_of = _refine(automaton)
    number: dict[int, DetState] = {}
    for block in block_of:
        number.setdefault(block, DetState(len(number)))
    representative: dict[int, int] = {}
    members: dict[int, set[State]] = {}
    for state, block in enumerate(block_of):
        representative.setdefault(block, state)
        members.setdefault(block, set()).update(automaton.members[state])
    moves = []
    for block in number:
        look()
        rows = automaton.moves[representative[block]]
        renumbered = {
            key: _renumbered(row, block_of, number)
            for key, row in {id(row): row for row in rows}.items()
        }
        moves.append(tuple(renumbered[id(row)] for row in rows))
    return DeterministicAutomaton(
        automaton.symbols,
        tuple(moves),
        tuple(tuple(sorted(members[block])) for block in number),
        automaton.class_of,
    )


def _renumbered(
    row: tuple[Move, ...], block_of: list[int], number: dict[int, DetState]
) -> tuple[Move, ...]:
    return tuple(
        (
            move
            if move.target is None
            else Move(move.marks, move.accepts, number[block_of[move.target]])
        )
        for move in row
    )


def _refine(automaton: DeterministicAutomaton) -> list[int]:
    """The class of each state."""
    into: list[list[_Into]] = [[] for _ in range(automaton.states)]
    groups: dict[object, list[int]] = {}
    for state, rows in enumerate(automaton.moves):
        look()
        letters: dict[tuple[tuple[str, ...], bool, bool], int] = {}
        for symbols, row in _rows_of(rows):
            for move in row:
                key = move.marks, move.accepts, move.target is None
                letters[key] = letters.get(key, 0) | symbols
                if move.target is not None:
                    into[move.target].append((state, move.marks, symbols))
        groups.setdefault((state == START, frozenset(letters.items())), []).append(state)
    blocks = [set(group) for group in groups.values()]
    block_of = [0] * automaton.states
    for index, block in enumerate(blocks):
        for state in block:
            block_of[state] = index
    waiting = list(range(len(blocks)))
    while waiting:
        look()
        for index, parts in _parts(blocks[waiting.pop()], into, block_of).items():
            rest = blocks[index].difference(*parts)
            # Refining by all parts but the largest is enough only if the largest is still to come
            # or was used before. Adding the others is right in both cases.
            kept, *new = sorted((part for part in (rest, *parts) if part), key=len, reverse=True)
            blocks[index] = kept
            for part in new:
                waiting.append(len(blocks))
                for state in part:
                    block_of[state] = len(blocks)
                blocks.append(part)
    return block_of


def _rows_of(rows: tuple[tuple[Move, ...], ...]) -> list[tuple[int, tuple[Move, ...]]]:
    """The rows of a state that have moves, each with its symbols as a bit set.

    A state that waits has one shared row for nearly all symbols. Rows that are equal but different
    objects may be listed separately.
    """
    symbols: dict[int, list[int]] = {}
    for symbol, row in enumerate(rows):
        if row:
            symbols.setdefault(id(row), []).append(symbol)
    return [(sum(1 << symbol for symbol in some), rows[some[0]]) for some in symbols.values()]


def _parts(
    splitter: set[int], into: list[list[_Into]], block_of: list[int]
) -> dict[int, list[set[int]]]:
    """For each class, its states that lead into the splitter, grouped by the letters that do so.
    Refining by one letter after another would finally give the same classes."""
    letters: dict[int, dict[tuple[str, ...], int]] = {}
    for target in splitter:
        for state, marks, symbols in into[target]:
            there = letters.setdefault(state, {})
            there[marks] = there.get(marks, 0) | symbols
    found: dict[int, dict[object, set[int]]] = {}
    for state, there in letters.items():
        key = frozenset(there.items())
        found.setdefault(block_of[state], {}).setdefault(key, set()).add(state)
    return {index: list(parts.values()) for index, parts in found.items()}
