"""What runs warn of at their end, and the sum of what runs over parts of one table have seen."""

from __future__ import annotations

from typing import NamedTuple

from celc_runtime.arrow.events.undeclared import Undeclared
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.plan import Plan
from celc_runtime.run.choice.deadlines import undecided_words
from celc_runtime.run.source.odd_events import OddEvents
from celc_runtime.values.warned import warn


class Seen(NamedTuple):
    """What runs warn of at their end; those over parts of one table add it up."""

    undecided: int
    undeclared: Undeclared
    odd: OddEvents

    def and_later(self, later: Seen) -> Seen:
        """The same with what the run over the next part has seen."""
        self.undeclared.add_part(later.undeclared)
        self.odd.add(later.odd)
        return self._replace(undecided=self.undecided + later.undecided)


def warn_at_the_end(plan: Plan, undecided: int, undeclared: Undeclared, odd: OddEvents) -> None:
    if undecided:
        warn(undecided_words(plan, undecided), EventWarning)
    if undeclared.total:
        warn(undeclared.told(plan), EventWarning)
    for text in odd.told(plan.name):
        warn(text, EventWarning)
