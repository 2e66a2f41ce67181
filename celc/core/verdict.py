"""What a query is and costs, in five lines for people who have never seen how celc works.

Both languages fill in the same five lines, which `celc explain` and `celc check -v` begin with. The
words are those of SQL and of the language: events, matches, look-ups, comparisons, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from celc_runtime.plan.frozen import frozen


@frozen
class Verdict:
    """The five answers, each one line of text without an end."""

    kind: str  # the kind of conditions, and what decides them
    event: str  # what reading one event (or row) costs
    match: str  # what finding one match costs
    kept: str  # what is kept in memory, and for how long
    cheaper: str  # what can be written instead
    of_rows: bool = False  # whether rows are read, and no events

    def lines(self) -> tuple[str, ...]:
        """The lines with their titles, in this order."""
        return (
            f"  kind     {self.kind}",
            f"  {'row  ' if self.of_rows else 'event'}    {self.event}",
            f"  match    {self.match}",
            f"  memory   {self.kept}",
            f"  cheaper  {self.cheaper}",
        )


MOST_SHOWN = 3  # conditions that one line shows


def listed(texts: Iterable[str]) -> str:
    """Texts each once, up to `MOST_SHOWN`, then how many more there are."""
    found = list(dict.fromkeys(texts))
    left = len(found) - MOST_SHOWN
    shown = ", ".join(found[:MOST_SHOWN])
    return f"{shown} and {left} more" if left > 0 else shown


def counted(count: int, one: str, many: str = "") -> str:
    """`1 comparison`, `3 comparisons`, `no comparison`."""
    if not count:
        return f"no {one}"
    return f"{count:,} {one if count == 1 else many or one + 's'}"
