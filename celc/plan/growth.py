"""How the time of a query by definition grows, in words.

The definition is evaluated for each choice of events, at each event that may end a match. Without
unlimited repetition the time is a power of the number of events: each event of the pattern is one
factor. Absent events count as well, because they are looked for around each match. An OR counts as
its largest operand.
"""

from celc.core.formula import Query
from celc.normal import normal_form as lp
from celc.normal.divide import nests_selectors
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import operands_of

_POWERS = {1: "in proportion to", 2: "with the square of", 3: "with the cube of"}


def growth_of(form: NormalForm, query: Query) -> str:
    """How the time grows with the events, as the rest of a sentence `the time …`."""
    power = _power_of(form)
    few = "in a window" if is_bounded(form, query) else "so far"
    if power is None:
        return f"can double with each event {few}"
    words = _POWERS.get(power, f"with the {power}th power of")
    return f"grows {words} the number of events {few}"


def is_bounded(form: NormalForm, query: Query) -> bool:
    selects = query.strategy not in ("ALL", "ANY")
    return query.window is not None and not nests_selectors(form, top=selects)


def _power_of(form: NormalForm) -> int | None:
    """How many events are chosen at once; None: there is no limit."""
    if isinstance(form, lp.Event):
        return 1
    powers = [_power_of(operand) for operand in operands_of(form)]
    known = [power for power in powers if power is not None]
    if len(known) < len(powers):
        return None
    if isinstance(form, lp.Disjunction | lp.Conjunction):
        return max(known, default=1)
    if isinstance(form, lp.Iteration):
        return None if form.most is None else form.most * known[0]
    return sum(known)
