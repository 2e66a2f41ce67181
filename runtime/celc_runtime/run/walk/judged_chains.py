"""Chains of events of uncertain time that the definition of a formula decides.

The automaton of the relaxed formula finds the orders in which events could be a match, with the
probability of each order. Here the definition says which matches exactly these events form in this
order.
"""

from collections.abc import Iterable

import numpy as np

from celc_runtime.arrow.matches.possible_rows import Rows
from celc_runtime.engine.definition.instants import ALONE
from celc_runtime.engine.definition.open_questions import Budget, Labels, OutOfWorkError, Stretch
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import ByDefinition
from celc_runtime.run.past.history import History
from celc_runtime.run.source.waiting_events import WaitingEvents

_NONE = np.zeros(0, np.int64)


class JudgedChains:
    """Judges chains of events; `history` holds what conditions read of them."""

    def __init__(self, definition: ByDefinition, plan: Plan, history: History) -> None:
        self._definition = definition
        self._plan = plan
        self._history = history
        labels = plan.answer.label_names
        self._kinds = {
            frozenset(labels[column] for column in kind.columns): number
            for number, kind in enumerate(plan.matching.kinds)
        }

    def rows(
        self,
        chains: Iterable[Rows],
        waiting: WaitingEvents,
        bound: float,
    ) -> Rows:
        """The matches among chains, each once; its confidence is the sum over its orders.

        Only those with a confidence above `bound`.
        """
        shares: dict[tuple[int, ...], float] = {}
        bits = self._plan.matching.kind_bits
        for ends, tags, confidences in chains:
            begin = 0
            for end, share in zip(ends.tolist(), confidences.tolist(), strict=True):
                chain = tuple((tags[begin:end][::-1] >> bits).tolist())
                # The relaxed formula can mark one chain in several ways.
                shares[chain] = share
                begin = end
        found: dict[tuple[tuple[int, Labels], ...], float] = {}
        for chain, share in shares.items():
            for match in self._matches(chain, waiting):
                found[match] = found.get(match, 0.0) + share
        kept = {match: share for match, share in found.items() if share > bound}
        if not kept:
            return Rows(_NONE, _NONE, np.zeros(0))
        lengths = [len(match) for match in kept]
        marked = [event << bits | self._kinds[labels] for match in kept for event, labels in match]
        return Rows(
            np.cumsum(lengths).astype(np.int64),
            np.array(marked, np.int64),
            np.array(list(kept.values())),
        )

    def _matches(
        self, chain: tuple[int, ...], waiting: WaitingEvents
    ) -> set[tuple[tuple[int, Labels], ...]]:
        """The labelled events of the matches that a chain forms, by their indices in all events."""
        places = np.array(chain)
        entries = waiting.entries[places].tolist()
        history = self._history
        stretch = Stretch(
            entries,
            waiting.symbols[places].tolist(),
            waiting.positions[places].tolist(),
            [ALONE] * len(chain),
            history.past,
            history.first,
            0,
            Budget(self._plan.choice.max_work),
        )
        last = len(chain) - 1
        try:
            with np.errstate(all="ignore"):
                matches = self._definition.formula.ending(stretch, last)
        except OutOfWorkError:
            position = int(waiting.positions[places[-1]])
            raise WorkLimitError(
                f"query {self._plan.name!r}: a match that ends at position {position:,} takes more "
                f"than {self._plan.choice.max_work:,} steps to check; raise the limit: --max-work, "
                "with_options(max_work=…)"
            ) from None
        return {
            tuple(sorted((chain[event], labels) for event, labels in match.labels))
            for match in matches
            if match.start == 0 and len(match.labels) == len(chain)
        }
