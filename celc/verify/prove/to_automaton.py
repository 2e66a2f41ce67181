"""Normal form → automaton → deterministic → minimal: one language, with marks.

A form has a machine of its own (`languages`), and then all is exact. A selector inside has none: it
compares a match with others that begin anywhere before. Its automaton is run on all streams of
symbols up to a length, beside the definition of the form.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from celc.automata.automaton import Automaton
from celc.automata.predicates import Alphabet, Symbol
from celc.core import formula as core
from celc.normal import normal_form as lp
from celc.normal.divide import Windowed
from celc.verify.prove.constants import clause_of_type
from celc.verify.prove.exploring import compare_all
from celc.verify.prove.forms import Forms
from celc.verify.prove.labellings import Labelling, Labels
from celc.verify.prove.languages import Languages
from celc.verify.prove.machines import (
    ACCEPT,
    Machine,
    TooManyStatesError,
    Word,
    difference,
    of_automaton,
    of_deterministic,
)
from celc.verify.prove.matches import ALONE, Match, OutOfStepsError, Steps, Stream, matches_text
from celc.verify.prove.representations import Representations
from celc.verify.prove.to_normal import shown_labels
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

CONSTRUCTED = "normal form → automaton"
DETERMINED = "automaton → deterministic automaton"
MINIMISED = "deterministic automaton → minimal automaton"

_MOST_STREAMS = 4000  # of symbols, of all lengths
_LONGER = 400
_MOST_STEPS = 250_000


def to_automaton(given: Representations) -> Verdict:
    """Whether the automaton has the matches of the form that it was built of."""
    letters = given.automaton.letters
    places = letters.classes if letters.symbols != letters.classes else 0
    form = _found(given)
    automaton = of_automaton(given.automaton)
    try:
        expected = Languages(given.alphabet, simultaneous=bool(places)).of(form)
    except TooManyStatesError:
        return Verdict(CONSTRUCTED, "not decided", "the machine of the form has too many states")
    except NotUnderstoodError as problem:
        return _on_streams(given, form, str(problem), places)
    what = f"the same language over {letters.symbols} symbols, marks included"
    if places:
        what += ", on words that are whole instants"
    return _compared(CONSTRUCTED, expected, automaton, given.alphabet, what, places)


def to_deterministic(given: Representations) -> Verdict:
    """Whether making the automaton deterministic keeps its language."""
    if given.full.as_met:
        what = "the same language; its states are made deterministic as a run meets them"
    else:
        what = f"the same language; {given.full.states} states, one run for each match"
        problem = _two_moves(given)
        if problem is not None:
            return Verdict(DETERMINED, "wrong", "a match could be listed twice", problem)
    one, other = of_automaton(given.automaton), of_deterministic(given.full)
    return _compared(DETERMINED, one, other, given.alphabet, what, 0)


def to_minimal(given: Representations) -> Verdict:
    """Whether merging states keeps the language."""
    what = f"the same language; {given.minimal.states} of {given.full.states} states"
    one, other = of_deterministic(given.full), of_deterministic(given.minimal)
    return _compared(MINIMISED, one, other, given.alphabet, what, 0)


def _found(given: Representations) -> lp.NormalForm:
    """The form that the automaton is built of. Below a selector under WITHIN it finds all matches
    of the operand."""
    rest = given.division.rest
    if not isinstance(rest, Windowed):
        return given.division.found
    labels = shown_labels(given.query)
    form = rest.selected.operand
    marked = any(lp.SUPPORT in one.marks for one in given.automaton.transitions)
    change = lp.KeepSupport(labels) if marked else lp.KeepLabels(labels)
    return lp.Relabel(form, (change,), form.span)


def _compared(
    step: str, left: Machine, right: Machine, alphabet: Alphabet, what: str, places: int
) -> Verdict:
    try:
        word = difference(left, right, places=places)
    except TooManyStatesError:
        return Verdict(step, "not decided", "the comparison meets too many sets of states")
    if word is None:
        return Verdict(step, "exact", what)
    return Verdict(step, "wrong", "their languages differ", _told(word, alphabet, places))


def _told(word: Word, alphabet: Alphabet, places: int) -> str:
    count = len(alphabet.symbols)
    said = ("", " (first of its instant)", " (inside its instant)", " (last of its instant)")
    events = ", ".join(
        f"{symbol_text(alphabet.symbols[letter % count])}"
        f"{said[letter // count] if places else ''} marked {_marks(marks)}"
        for letter, marks in word
    )
    return f"one of them alone has the match [{events}]"


def symbol_text(symbol: Symbol) -> str:
    """A symbol, for people: its type, and which of the groups of conditions are true."""
    if symbol.type is None:
        return "any other event"
    return f"{symbol.type.name} with conditions {symbol.truth:b}"


def _marks(marks: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(one.replace(core.ROLE, "role ") for one in marks)) + "}"


def _two_moves(given: Representations) -> str | None:
    for state, rows in enumerate(given.full.moves):
        for symbol, row in enumerate(rows):
            marks = [move.marks for move in row]
            if len(set(marks)) < len(marks):
                return f"state {state} has two moves of class {symbol} with the same marks"
    return None


# --- on streams of symbols ------------------------------------------------------------------------


_SYMBOL = "symbol"


class _OfSymbols(Forms):
    """Forms whose events are symbols."""

    def __init__(self, stream: Stream, steps: Steps, alphabet: Alphabet) -> None:
        super().__init__(stream, steps, whole=False, satisfies=self._by_symbol)
        self._alphabet = alphabet
        self._groups = {one.type: one.groups for one in alphabet.types}

    def _by_symbol(
        self, event_type: core.EventType, clauses: tuple[lp.EventClause, ...], place: int
    ) -> bool:
        symbol = self._alphabet.symbols[self.stream.events[place][_SYMBOL]]
        if symbol.type != event_type:
            return False
        groups = enumerate(self._groups[event_type])
        true = {one for bit, group in groups if symbol.truth >> bit & 1 for one in group}
        return true.issuperset(clauses)

    def _asked(self, clause: lp.EventClause, place: int) -> bool:
        symbol = self._alphabet.symbols[self.stream.events[place][_SYMBOL]]
        assert symbol.type is not None
        known = clause_of_type(clause, symbol.type)
        return known if isinstance(known, bool) else self._by_symbol(symbol.type, (known,), place)


class _Runs:
    """The matches of an automaton on a stream that grows, found by following all its runs."""

    def __init__(self, automaton: Automaton, labels: Labels) -> None:
        self._labels = labels
        self._machine = automaton.letters.machine
        self._symbols = automaton.letters.symbols
        self._edges = of_automaton(automaton).edges
        self._contexts = [0]
        self._under_way: list[list[tuple[int, int, Labelling]]] = [[]]
        self._ended: list[frozenset[Match]] = []

    def read(self, symbol: int) -> frozenset[Match]:
        """The matches that end with one more event."""
        place = len(self._ended)
        context = self._contexts[-1]
        letter = context * self._symbols + symbol
        on, ended = [], set()
        for state, start, mu in [*self._under_way[-1], (0, place, 0)]:
            for mask, marks, target in self._edges[state]:
                if mask >> letter & 1:
                    more = mu | self._labels.at(marks, place)
                    if target == ACCEPT:
                        ended.add((start, more))
                    else:
                        on.append((target, start, more))
        self._contexts.append(self._machine.following[context][symbol])
        self._under_way.append(list(dict.fromkeys(on)))
        self._ended.append(frozenset(ended))
        return self._ended[-1]

    def cut(self, size: int) -> None:
        del self._contexts[size + 1 :], self._under_way[size + 1 :], self._ended[size:]


# Long: short streams of all symbols, then longer ones.
def _on_streams(given: Representations, form: lp.NormalForm, why: str, places: int) -> Verdict:
    if places:
        return Verdict(CONSTRUCTED, "tested", f"simultaneous events: {why}")
    steps = Steps(_MOST_STEPS)
    stream = Stream()
    forms, runs = _OfSymbols(stream, steps, given.alphabet), _Runs(given.automaton, stream.labels)
    symbols = range(len(given.alphabet.symbols))
    found = 0

    def push(symbol: int, compares: bool = True) -> str | None:
        nonlocal found
        stream.events.append({_SYMBOL: symbol})
        ended = runs.read(symbol)
        steps.spend(1 + len(ended))
        if not compares:
            return None
        expected = forms.matches(form, ALONE, len(stream.events) - 1)
        found += len(expected)
        if ended == expected:
            return None
        texts = [symbol_text(given.alphabet.symbols[one[_SYMBOL]]) for one in stream.events]
        return (
            f"on [{', '.join(texts)}] the matches that end last are "
            f"{matches_text(expected, stream.labels)} by the form and "
            f"{matches_text(ended, stream.labels)} by the automaton"
        )

    def cut(size: int) -> None:
        del stream.events[size:]
        forms.forget(size)
        runs.cut(size)

    length, number = 0, 1
    while number * len(symbols) <= _MOST_STREAMS and length < 12:
        number *= len(symbols)
        length += 1
    longer = 0
    done, problem = compare_all(length, steps, lambda: symbols, push, cut)
    try:
        steps.left = _MOST_STEPS
        for word in _walks(given) if problem is None else ():
            cut(0)
            for symbol in word:
                problem = problem or push(symbol)
            longer += 1
            if problem is not None:
                break
    except OutOfStepsError:
        pass
    if problem is not None:
        return Verdict(CONSTRUCTED, "wrong", "they differ on a stream of symbols", problem)
    what = (
        f"the same matches on all streams of up to {done} of {len(symbols)} symbols and on "
        f"{longer} longer ones ({why}); {found} matches were compared"
    )
    return Verdict(CONSTRUCTED, "bounded", what)


def _walks(given: Representations) -> Iterator[list[int]]:
    """Streams of symbols along the automaton, with others between them."""
    draw = random.Random(given.automaton.states)
    edges = of_automaton(given.automaton).edges
    symbols = given.automaton.letters.symbols
    for _ in range(_LONGER if edges[0] else 0):
        word: list[int] = []
        state = 0
        while len(word) < 9:
            if draw.random() < 0.25:
                word.append(draw.randrange(symbols))
            if state == ACCEPT or not edges[state]:
                state = 0
            mask, _, state = draw.choice(edges[state])
            letters = [one for one in range(mask.bit_length()) if mask >> one & 1]
            word.append(draw.choice(letters) % symbols)
        yield word
