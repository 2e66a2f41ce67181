"""Symbols, letters, states and strategies in words, for generated comments and for dumps."""

from collections.abc import Collection
from typing import assert_never

from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.automaton import Automaton, State
from celc.automata.determinize import START, DetState
from celc.automata.letters import Letters, Mask, Place
from celc.automata.predicates import Alphabet, Symbol
from celc.codegen.text.escape import comment_text
from celc.core.bits import bits_of
from celc.diagnostics.deadline import look
from celc.normal.normal_form import EventClause
from celc.normal.show import show_clauses
from celc.plan.program import Program
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    Listing,
    LongestRuns,
    StraightLine,
    UnionLists,
    Update,
)

OTHER = "any other event"
"""The meaning of symbol 0."""


def describe_symbol(alphabet: Alphabet, symbol: Symbol) -> str:
    """A symbol class in words: its type, the conditions that hold, and those that do not."""
    if symbol.type is None:
        return OTHER
    conditions = alphabet.conditions_on(symbol.type)
    parts = [
        show_clauses(group) if symbol.truth >> bit & 1 else _not(group)
        for bit, group in enumerate(conditions.groups)
    ]
    return symbol.type.name + (f"[{', '.join(parts)}]" if parts else "")


def _not(group: tuple[EventClause, ...]) -> str:
    return f"not {show_clauses(group)}" if len(group) == 1 else f"not ({show_clauses(group)})"


def describe_letters(letters: Letters, mask: Mask) -> str:
    """A set of letters in words: classes of events, with their contexts where some are left out."""
    symbols: dict[int, list[int]] = {}
    for letter in bits_of(mask):
        symbols.setdefault(letter % letters.symbols, []).append(letter // letters.symbols)
    by_contexts: dict[tuple[int, ...], list[int]] = {}
    for symbol, contexts in symbols.items():
        by_contexts.setdefault(tuple(contexts), []).append(symbol)
    texts = []
    for contexts_there, symbols_there in by_contexts.items():
        text = "any"
        if len(symbols_there) < letters.symbols:
            text = " | ".join(_describe_place(letters, symbol) for symbol in symbols_there)
        if len(contexts_there) < letters.machine.contexts:
            text += f" in context {', '.join(map(str, contexts_there))}"
        texts.append(text)
    return " | ".join(texts)


def _describe_place(letters: Letters, symbol: int) -> str:
    """A symbol in words, with its place in an instant where letters tell it."""
    place, number = divmod(symbol, letters.classes)
    text = describe_symbol(letters.alphabet, letters.alphabet.symbols[number])
    if letters.symbols == letters.classes:
        return text
    return f"{text} ({Place(place).name.lower()})"


def describe_state(program: Program, state: DetState) -> str:
    """A state by the atoms read last and those that can be read next, as in `after A, before B`."""
    look()
    if state == START:
        return "start"
    return describe_members(program.automaton, set(program.tables.members[state]))


def describe_members(automaton: Automaton, members: Collection[State]) -> str:
    """`describe_state` for a set of states of the nondeterministic automaton."""
    after: dict[str, None] = {}
    before: dict[str, None] = {}
    for transition in automaton.transitions:
        if transition.target in members:
            after.update(dict.fromkeys(transition.names))
        if transition.source in members:
            before.update(dict.fromkeys(transition.names))
    return comment_text(f"after {_either(after)}, before {_either(before)}", limit=90)


def _either(names: dict[str, None]) -> str:
    return " or ".join(names)


def describe_update(update: Update) -> str:
    """The form of an update, as in `The update is …`."""
    match update:
        case BranchFree():
            return "code without branches"
        case StraightLine():
            return "straight-line code"
        case Keyed():
            return "straight-line code with piles by key"
        case UnionLists():
            return "the general engine, which follows tables"
        case _:
            assert_never(update)


def describe_listing(listing: Listing) -> str:
    """How matches are listed, as in `Matches are listed …`."""
    match listing:
        case All():
            return "one by one"
        case InRuns():
            return "column by column"
        case Checked():
            return "one by one, with checks"
        case InWindow():
            return "by an automaton that runs over each window"
        case EarliestInWindow():
            return "by the earliest events of each window"
        case Latest():
            return "by the latest events of each window"
        case United():
            return "as their unions"
        case Counted():
            return "not at all"
        case LongestRuns():
            return "as runs of events"
        case ByDefinition():
            return "by the definition of the formula"
        case InWorlds():
            return "in every order in which their events can come"
        case _:
            assert_never(listing)
