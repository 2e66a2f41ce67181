"""The smallest automaton of a query as a page: drawn, beside its formula, with counts of events."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DeterministicAutomaton, DetState
from celc.automata.letters import Letters
from celc.codegen.expressions.describe import describe_letters, describe_state
from celc.driver.pipeline import Stages
from celc.interfaces.explain.stages import dump_formula
from celc.interfaces.pages.counts import Taken
from celc.interfaces.pages.layout import Arrow, Drawing, Size, laid_out
from celc.interfaces.pages.page import Page, page_of
from celc.normal.show import show_labels

# a larger automaton is shown as a list, because nobody finds a state in its drawing
MOST_DRAWN = 200

MATCH = -1  # a target of transitions: the match ends

_SIGN = 7.25  # the width of one character of a label, in the units of the drawing

_LINE = 16
_LONGEST = 34
_MOST_LINES = 3


@frozen
class Transition:
    """The moves between two states (or `MATCH`) with the same marks."""

    source: int
    target: int
    events: str  # the events that take it, in words
    marks: str
    classes: frozenset[int]  # the letter classes of these events
    labels: tuple[str, ...]

    @property
    def waits(self) -> bool:
        """Whether the event passes unmarked and the match stays in its state."""
        return self.source == self.target and not self.labels

    @property
    def text(self) -> str:
        """The transition in words: `T[value > 40.0] / {hot}`."""
        return f"{self.events} / {self.marks}"


def transitions_of(stages: Stages) -> list[Transition]:
    """All transitions of the minimal automaton, by source and target."""
    automaton, letters = stages.minimal, stages.automaton.letters
    classes: dict[tuple[int, int, tuple[str, ...]], set[int]] = {}
    for state, rows in enumerate(automaton.moves):
        for symbol, row in enumerate(rows):
            for move in row:
                if move.accepts:
                    classes.setdefault((state, MATCH, move.marks), set()).add(symbol)
                if move.target is not None:
                    classes.setdefault((state, int(move.target), move.marks), set()).add(symbol)
    found = []
    for (state, target, marks), members in classes.items():
        mask = 0
        for letter, number in enumerate(automaton.class_of):
            mask |= (number in members) << letter
        shown = show_labels(marks) if marks or state == START else "○"
        words = _events(letters, mask)
        found.append(Transition(state, target, words, shown, frozenset(members), marks))
    return found


def _events(letters: Letters, mask: int) -> str:
    """Letters in words. A type all of whose events are among them is named alone."""
    if letters.machine.contexts > 1 or letters.symbols != letters.classes:
        return describe_letters(letters, mask)
    if mask == letters.all:
        return "any"
    parts = []
    for one in letters.alphabet.types:
        numbered = letters.alphabet.numbered(one.type)
        symbols = [number for number, _ in numbered]
        # Without a symbol for events that satisfy nothing, these are among all other events.
        covers = any(not symbol.truth for _, symbol in numbered)
        if covers and all(mask >> number & 1 for number in symbols):
            parts.append(one.type.name)
            mask &= ~sum(1 << number for number in symbols)
    return " | ".join([*parts, *([describe_letters(letters, mask)] if mask else [])])


def automaton_page(
    stages: Stages, text: str, taken: Taken | None, title: str | None = None
) -> Page:
    """The page of a query's automaton.

    `text` is the text of the query's file. `taken` counts how often events took each transition; it
    is None where no events were given.
    """
    automaton = stages.minimal
    transitions = transitions_of(stages)
    states = [describe_state(stages.program, DetState(n)) for n in range(automaton.states)]
    drawn = automaton.states <= MOST_DRAWN
    counted = None if taken is None else [taken.of(t) for t in transitions]
    picture = _picture(states, transitions, counted) if drawn else None
    name = title or stages.query.name
    data = {
        "title": name,
        "states": states,
        "transitions": [
            {
                "source": one.source,
                "target": one.target,
                "events": one.events,
                "marks": one.marks,
                "count": None if counted is None else counted[number],
            }
            for number, one in enumerate(transitions)
        ],
        "events": None if taken is None else taken.events,
    }
    return page_of(
        "automaton",
        ("colours", "automaton"),
        f"{name} · celc explain",
        data,
        name=name,
        summary=_summary(automaton, transitions, taken),
        notes=_notes(drawn, automaton, taken),
        picture=picture,
        rows=[] if drawn else _rows(states, transitions, counted),
        counted=taken is not None,
        text=text.strip("\n"),
        formula=dump_formula(stages).rstrip("\n"),
    )


def _summary(
    automaton: DeterministicAutomaton, transitions: Sequence[Transition], taken: Taken | None
) -> str:
    parts = [
        f"{automaton.states:,} state{'s' * (automaton.states != 1)}",
        f"{len(transitions):,} transition{'s' * (len(transitions) != 1)}",
    ]
    if taken is not None:
        parts.append(f"{taken.events:,} event{'s' * (taken.events != 1)}")
        parts.append(f"matches end at {taken.ends:,} of them")
    return " · ".join(parts)


def _notes(drawn: bool, automaton: DeterministicAutomaton, taken: Taken | None) -> list[str]:
    notes = []
    if not drawn:
        notes.append(
            f"The automaton has {automaton.states:,} states, and a drawing of more than "
            f"{MOST_DRAWN} shows nothing: its transitions are listed instead."
        )
    if taken is not None:
        notes.append(
            "A count says at how many events at least one partial match took the transition."
        )
        notes += taken.notes
    return notes


# --- the drawing ----------------------------------------------------------------------------------


def _picture(
    states: Sequence[str], transitions: Sequence[Transition], counts: Sequence[int] | None
) -> dict[str, Any]:
    """The nodes, arrows and labels of the drawing, with their places."""
    match = len(states)
    names = [*(_state_name(number) for number in range(match)), "match"]
    sizes = [Size(max(44.0, 28 + len(name) * _SIGN), 40.0) for name in names]
    groups: dict[tuple[int, int], list[int]] = {}
    for number, one in enumerate(transitions):
        target = match if one.target == MATCH else one.target
        groups.setdefault((one.source, target), []).append(number)
    arrows, labels = [], []
    for (source, target), numbers in groups.items():
        lines = _label(transitions, numbers, counts)
        labels.append(lines)
        wide = max((len(line) for line in lines), default=0)
        size = Size(wide * _SIGN + 14 if lines else 0.0, len(lines) * _LINE + 6.0)
        arrows.append(Arrow(source, target, size))
    drawing = laid_out(sizes, arrows, START)
    moving = [number for number, one in enumerate(transitions) if not one.waits]
    most = 0 if counts is None else max((counts[number] for number in moving), default=0)
    return {
        "width": round(drawing.width + 2 * _EDGE, 1),
        "height": round(drawing.height + 2 * _EDGE, 1),
        "nodes": [
            {
                "number": number,
                "name": names[number],
                "kind": "start" if number == START else "match" if number == match else "state",
                "x": round(x + _EDGE, 1),
                "y": round(y + _EDGE, 1),
                "width": sizes[number].width,
            }
            for number, (x, y) in enumerate(drawing.nodes)
        ],
        "arrows": [
            _arrow(drawing, place, arrow, labels[place], numbers, sizes, counts, most, transitions)
            for place, (arrow, numbers) in enumerate(zip(arrows, groups.values(), strict=True))
        ],
    }


_EDGE = 14


def _state_name(number: int) -> str:
    return "start" if number == START else str(number)


def _label(
    transitions: Sequence[Transition], numbers: Sequence[int], counts: Sequence[int] | None
) -> list[str]:
    """The lines of an arrow's label. An arrow whose events only wait has none."""
    told = [number for number in numbers if not transitions[number].waits]
    lines = [_short(transitions[number].text) for number in told[:_MOST_LINES]]
    if len(told) > _MOST_LINES:
        lines.append(f"… and {len(told) - _MOST_LINES:,} more")
    if lines and counts is not None:
        lines.append(f"×{sum(counts[number] for number in told):,}")
    return lines


def _short(text: str) -> str:
    """A label's line, cut where it is too long; its marks are always kept."""
    if len(text) <= _LONGEST:
        return text
    events, _, marks = text.rpartition(" / ")
    kept = max(8, _LONGEST - len(marks) - 4)
    return f"{events[:kept]}… / {marks}"


def _arrow(
    drawing: Drawing,
    place: int,
    arrow: Arrow,
    lines: Sequence[str],
    numbers: Sequence[int],
    sizes: Sequence[Size],
    counts: Sequence[int] | None,
    most: int,
    transitions: Sequence[Transition],
) -> dict[str, Any]:
    label_x, label_y = drawing.labels[place]
    # One event can take several transitions of an arrow, each for another partial match.
    count = 0 if counts is None else max(counts[number] for number in numbers)
    waits = all(transitions[number].waits for number in numbers)
    plain = waits or counts is None or not most
    width = 1.4 if plain else 1.2 + 3.4 * math.sqrt(count / most)
    points = [(x + _EDGE, y + _EDGE) for x, y in drawing.lines[place]]
    return {
        "place": place,
        "numbers": list(numbers),
        "path": _loop(points) if arrow.source == arrow.target else _path(points, arrow, sizes),
        "width": round(width, 2),
        "waits": waits,
        "never": counts is not None and not waits and not count,
        "x": round(label_x + _EDGE, 1),
        "y": round(label_y + _EDGE, 1),
        "wide": arrow.label.width,
        "high": arrow.label.height,
        "lines": list(lines),
        "count": counts is not None and bool(lines),
    }


def _loop(points: Sequence[tuple[float, float]]) -> str:
    (left, low), (_, top), (right, _) = points
    return (
        f"M{left:.1f} {low:.1f}C{left - 8:.1f} {top - 6:.1f} {right + 8:.1f} {top - 6:.1f} "
        f"{right:.1f} {low - 1:.1f}"
    )


def _path(points: Sequence[tuple[float, float]], arrow: Arrow, sizes: Sequence[Size]) -> str:
    """A line through points that leaves and enters nodes at their sides."""
    way = 1 if points[-1][0] >= points[0][0] else -1
    first = (points[0][0] + way * sizes[arrow.source].width / 2, points[0][1])
    last = (points[-1][0] - way * (sizes[arrow.target].width / 2 + 3), points[-1][1])
    through = [first, *points[1:-1], last]
    parts = [f"M{first[0]:.1f} {first[1]:.1f}"]
    for (x, y), (next_x, next_y) in pairwise(through):
        bend = (next_x - x) / 2
        parts.append(
            f"C{x + bend:.1f} {y:.1f} {next_x - bend:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}"
        )
    return "".join(parts)


def _rows(
    states: Sequence[str], transitions: Sequence[Transition], counts: Sequence[int] | None
) -> list[Mapping[str, Any]]:
    """The lines of an automaton that is shown as a list."""
    return [
        {
            "source": _state_name(one.source),
            "meaning": states[one.source],
            "events": one.events,
            "marks": one.marks,
            "target": "match" if one.target == MATCH else str(one.target),
            "count": None if counts is None else counts[number],
        }
        for number, one in enumerate(transitions)
        if not one.waits
    ]
