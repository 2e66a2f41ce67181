"""Figure 4, precise timestamps: throughput, runs, and where the time goes, of SEQ(A, B+, C).

(a) against the selectivity θ, (b) and (c) against the window W, for `b[i].v >= max(b[..i-1].v)`;
(d) for `c.v < max(b[].v)`; (e) and (f) the costs of SASE+ and of postponing. Runs, tests and
choices are counted; seconds are those of compiled loops that count matches, and of celc, which
writes them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from baselines import postponed, runs
from baselines.postponed import found_by_postponing
from baselines.runs import Events, Pattern, found_by_runs
from common import matches_of
from streams import feeding, nodes_made

from papers.figures import Made, Panel, Points, Sentence, bends_up, least_seconds, slope
from papers.sase.template import FALSE_VALUE, TRUE_VALUE, batch_of, compiled, stream, within

WINDOWS = (25, 50, 75, 100)
WINDOWS_OF_ALL_CHOICES = (20, 40, 60)
"""The windows with the false-value condition: all choices of B's below a value pass it, but few
C's do."""
LOWEST = (0.9, 0.7, 0.4, 0.0)
"""B's from these values on: the lower, the more matches."""


class Counted(NamedTuple):
    """A pattern over a stream in each way."""

    runs: runs.Counts
    late: postponed.Counts
    early: postponed.Counts
    nodes: int


def make(small: bool) -> Made:
    """The figure; small: 300 events, narrow windows."""
    events = stream(300 if small else 2_000)
    windows = (10, 20, 40, 60) if small else WINDOWS
    others = (10, 20, 40) if small else WINDOWS_OF_ALL_CHOICES
    of_windows = {w: _counted(within(TRUE_VALUE, w), events, small) for w in windows}
    of_others = {w: _counted(within(FALSE_VALUE, w), events, small) for w in others}
    of_lowest = {low: _counted(_lowest(low, WINDOWS[0]), events, small) for low in LOWEST}
    every = {**of_windows, **{f"{w} d": c for w, c in of_others.items()}, **of_lowest}
    for key, one in every.items():
        if len({one.runs.matches, one.late.matches, one.early.matches}) > 1:
            raise RuntimeError(f"{key}: the ways find different matches: {one}")
    panels, sentences = _of_counts(of_windows, of_lowest, of_others, len(events.types))
    if small:
        return Made(tuple(panels), tuple(sentences))
    timed, said, ours = _timed(events)
    return Made((*timed, *panels), (*sentences, *said), ours)


def _lowest(low: float, window: int) -> Pattern:
    """The true-value condition over B's from a value on."""
    first, middle, last = within(TRUE_VALUE, window).parts
    return Pattern((first, replace(middle, low=low), last), window)


def _counted(pattern: Pattern, events: Events, small: bool) -> Counted:
    run, _ = feeding(compiled(pattern), [batch_of(events)], listed=False)
    late, early = (
        found_by_postponing(pattern, events, early=early, by_numba=not small)[0]
        for early in (False, True)
    )
    by_runs = found_by_runs(pattern, events, by_numba=not small).counts
    return Counted(by_runs, late, early, nodes_made(run))


def _of_counts(
    of_windows: dict[int, Counted],
    of_lowest: dict[float, Counted],
    of_others: dict[int, Counted],
    events: int,
) -> tuple[list[Panel], list[Sentence]]:
    def line(counted: dict[Any, Counted], what: Any) -> Points:
        return tuple((key, what(one)) for key, one in counted.items())

    all_runs = line(of_windows, lambda one: one.runs.runs)
    shared = line(of_windows, lambda one: one.early.runs)
    nodes = line(of_windows, lambda one: one.nodes)
    begun = line(of_windows, lambda one: one.runs.begun)
    tests = line(of_windows, lambda one: one.runs.tests)
    taken = line(of_windows, lambda one: one.early.taken)
    tried = line(of_windows, lambda one: one.early.tried)
    thetas = [one.runs.matches / events for one in of_lowest.values()]
    more = [one.runs.runs / one.early.runs for one in of_lowest.values()]
    late = [one.late.tried for one in of_others.values()]
    early = [one.early.tried for one in of_others.values()]
    saved = [a / max(1, b) for a, b in zip(late, early, strict=True)]
    sentences = [
        Sentence(
            "(a) SASE+ makes more runs than postponing, and the more times the greater θ is",
            more == sorted(more) and thetas == sorted(thetas) and more[0] > 1,
            ", ".join(f"θ {t:.2f}: {m:.1f} times" for t, m in zip(thetas, more, strict=True)),
        ),
        bends_up("(b, c) With W the runs of SASE+ grow", all_runs, 1.5),
        Sentence(
            "(c) Postponing has as many runs at every W: one for each first event",
            len({count for _, count in shared}) == 1,
            ", ".join(f"{count:,}" for _, count in shared),
        ),
        Sentence(
            "(c) celc's nodes do not grow with W by more than the exponent 0.2",
            slope(nodes) <= 0.2,
            f"{slope(nodes):.2f}",
        ),
        Sentence(
            "(d) Early filters try at most half of the choices at every W",
            min(saved) >= 2,
            ", ".join(f"{one:.1f} times fewer" for one in saved),
        ),
        Sentence(
            "(e) SASE+ begins as many runs at every W, and its tests are what grows",
            len({count for _, count in begun}) == 1 and tests[-1][1] > 5 * tests[0][1],
            f"{begun[0][1]:,} begun; {tests[0][1]:,} to {tests[-1][1]:,} tests",
        ),
        Sentence(
            "(f) Pattern matching by postponing (events taken) grows with the exponent 1.2 at most",
            slope(taken) <= 1.2,
            f"{slope(taken):.2f}",
        ),
        Sentence(
            "(f) Its matches are made in a smaller part of what SASE+ tests at the widest W",
            tried[-1][1] < tests[-1][1],
            f"{tried[-1][1]:,} choices tried, {tests[-1][1]:,} tests",
        ),
    ]
    of_kind = {"SASE+: runs": all_runs, "postponing: runs": shared, "celc: nodes": nodes}
    cost = {"begun": begun, "tests": tests}
    cost |= {"events of matches": line(of_windows, lambda one: one.runs.shown)}
    of_postponing = {"begun": shared, "taken": taken, "choices tried": tried}
    of_postponing |= {"events of matches": line(of_windows, lambda one: one.early.shown)}
    panels = [
        Panel("(c) runs", "W", "runs or nodes", of_kind, "xy"),
        Panel("(e) cost of SASE+", "W", "a count", cost, "xy"),
        Panel("(f) cost of postponing with early filters", "W", "a count", of_postponing, "xy"),
    ]
    return panels, sentences


def _timed(events: Events) -> tuple[list[Panel], list[Sentence], dict[str, str]]:
    """Throughput against θ and W."""
    count = len(events.types)
    patterns = {
        "(a)": {low: _lowest(low, WINDOWS[0]) for low in LOWEST},
        "(b)": {w: within(TRUE_VALUE, w) for w in WINDOWS},
        "(d)": {w: within(FALSE_VALUE, w) for w in WINDOWS_OF_ALL_CHOICES},
    }
    panels, most = [], 0.0
    batch = batch_of(events)
    for part, asked in patterns.items():
        lines: dict[str, list[tuple[float, float]]] = {}
        for key, pattern in asked.items():
            query = compiled(pattern)
            x: float = key
            if part == "(a)":
                x = matches_of(query, batch) / count
            ways = {
                "SASE+": partial(found_by_runs, pattern, events),
                "postponing": partial(found_by_postponing, pattern, events, early=False),
                "on the fly": partial(found_by_postponing, pattern, events, early=True),
                "celc": partial(matches_of, query, batch),
            }
            seconds = least_seconds(ways, 3)
            for name, one in seconds.items():
                lines.setdefault(name, []).append((x, count / one))
            most = max(most, seconds["SASE+"] / min(seconds["postponing"], seconds["on the fly"]))
        drawn = {name: tuple(points) for name, points in lines.items()}
        label = "θ, matches for each event" if part == "(a)" else "W"
        panels.append(Panel(f"{part} throughput", label, "events a CPU second", drawn, "xy"))
    said = Sentence(
        "(b) Postponing is more than ten times as fast as SASE+ somewhere",
        most > 10,
        f"{most:.0f} times",
        timed=True,
    )
    return panels, [said], {"postponing beside SASE+ and ZStream, at most": f"{most:.0f} times"}
