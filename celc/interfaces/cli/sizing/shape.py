"""What the cost of a query depends on, read off its plan: the terms of the model are made of it.

Rejected: the time of a short run of the query itself. It needs events of the user's, and knows
nothing of Spark, whose share of a row is ten times that of the kernel.
"""

from __future__ import annotations

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan, Window
from celc_runtime.run.ranges import why_not_split

from celc.driver.pipeline import Stages
from celc.interfaces.explain.costs import chosen_events
from celc.normal.divide import Roles
from celc.plan.strategy import (
    ByDefinition,
    Checked,
    EarliestInWindow,
    InWindow,
    InWorlds,
    UnionLists,
)

KEYS, RANGES, ONE = "keys", "time ranges", "one task"
"""What the tasks of a batch job share: whole keys, ranges of time, or nothing."""


class NotKnown(Exception):
    """Why the cost of a query cannot be predicted, in words."""


@frozen
class Shape:
    """What the model knows of a query.

    numbers, texts: how many columns it reads, texts apart. values: how many values a row of the
    answer has; of those that labels show without keys, real: real numbers and texts, which hardly
    get shorter in a file, other: all others. types: event types that its formula names. search: the
    power of the events in the window with which the search for matches grows; 0: there is no
    search. tables: whether the general engine runs it. parts: KEYS, RANGES or ONE.
    """

    name: str
    numbers: int
    texts: int
    values: int
    real: int
    other: int
    types: int
    search: int
    tables: bool
    parts: str
    why_one: str  # why one task reads everything; empty: several do
    window: Window | None


def shape_of(stages: Stages, plan: Plan) -> Shape:
    """The shape of a query; `plan` is that of its module. Raises NotKnown for a query of a kind
    that was not measured."""
    _refuse(stages, plan)
    source = plan.source
    types = [one.type for one in source.input_attributes]
    texts = types.count("STRING")
    parts, why = KEYS, ""
    if plan.interleaves or not source.partition_by:
        why = why_not_split(plan)
        parts = ONE if why else RANGES
    return Shape(
        plan.name,
        len(types) - texts,
        texts + len(source.text_columns),
        _values(plan),
        *_shown(plan),
        max(1, len(source.types)),
        _search(stages),
        isinstance(stages.program.update, UnionLists),
        parts,
        why,
        plan.matching.window,
    )


def _refuse(stages: Stages, plan: Plan) -> None:
    source = plan.source
    if source.reads:
        raise NotKnown(
            f"it reads the rows of {', '.join(source.reads)}, and how many these are is not known: "
            "size that query alone, and then this one with a declared stream in its place"
        )
    if source.parameters is not None:
        raise NotKnown(
            "it is run for each row of a table (FOR EACH), and how many rows an event concerns is "
            "not known: run it on a sample with `celc run`"
        )
    if source.uncertain is not None:
        raise NotKnown(
            "the time of its events is uncertain, and how many of them overlap is not known: run "
            "it on a sample with `celc run`"
        )
    if isinstance(stages.program.listing, ByDefinition | InWorlds):
        raise NotKnown(
            "its matches are found by definition, in plain Python, and how long that takes goes by "
            "the events: `celc explain` names the part of the query; run it on a sample with "
            "`celc run`"
        )


def _values(plan: Plan) -> int:
    """The values of a row of the answer: keys, times, and what each label shows."""
    labels = sum(max(1, len(label.attributes)) for label in plan.answer.labels)
    return len(plan.source.partition_by) + 2 + labels + len(plan.answer.expressions)


def _shown(plan: Plan) -> tuple[int, int]:
    """(how many real numbers and texts labels show, how many other values), keys left out: those of
    a match are equal."""
    source = plan.source
    shown = [name for label in plan.answer.labels for name in label.attributes]
    types = [source.type_of(name) for name in shown if name not in source.partition_by]
    real = sum(type in ("DOUBLE", "FLOAT", "STRING") for type in types)
    return real, len(types) - real


def _search(stages: Stages) -> int:
    match stages.program.listing:
        case Checked():
            rest = stages.division.rest
            assert isinstance(rest, Roles)
            power = chosen_events(rest.flat.form)
            if power is None:
                raise NotKnown(
                    "its search for matches can take twice as long with each event of the window, "
                    "and how long it does goes by the events: run it on a sample with `celc run`"
                )
            return power - 1
        case InWindow() | EarliestInWindow():
            return 1
        case _:
            return 0
