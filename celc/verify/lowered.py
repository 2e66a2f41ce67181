"""The invariants of the last representation: the plan of a query, and how it is run."""

from collections.abc import Iterable, Iterator
from typing import Any

from celc_runtime.plan.expressions import Aggregate, OwnAggregate, OwnCall, attributes_of, nodes_in
from celc_runtime.plan.parameters import Concern, Move
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.relevance import Relevant
from celc_runtime.plan.strategy import (
    AdjoiningRuns,
    ByDefinition,
    Checked,
    InRuns,
    InWorlds,
    Listing,
    LongestRuns,
    Remembers,
    UnionLists,
    Update,
)

from celc.plan.code import Code
from celc.verify.violations import Violation, Violations

COLUMNS = "every column that something names is one that the query reads"
ONCE = "names of columns, types and labels are there once"
NUMBERS = "labels, windows, deadlines and kinds are named by numbers that there are"
TYPES = "events that matter are of types that are declared"
ONE_ANSWER = "each row of the answer is a match, a union or a total"
ONE_CHOICE = "what chooses by starts lists all matches first"
EACH_KIND = "a listing that asks for kinds has something for each"
NO_PILES = "code over piles has a number of piles"


def plan(found: Plan, update: Update, listing: Listing) -> Violations:
    """A plan names only its own columns, labels and windows; its listing names only its kinds.

    The runtime looks all of them up without a check. A wrong number would be a `KeyError`, or the
    events of another label.
    """
    yield from _columns(found, listing)
    yield from _names(found)
    yield from _numbers(found)
    yield from _types(found)
    choice, answer = found.choice, found.answer
    if answer.totals is not None and (answer.collapsed or answer.expressions):
        yield Violation(ONE_ANSWER, "totals are unions, or have expressions of one match")
    if choice.per_start is not None and choice.limit is not None:
        yield Violation(ONE_CHOICE, f"LIMIT {choice.limit} comes before {choice.per_start}")
    yield from _kinds(found, listing)
    if not isinstance(update, UnionLists) and update.piles < 0:
        yield Violation(NO_PILES, f"there are {update.piles}")


def _columns(found: Plan, listing: Listing) -> Violations:
    parameters, matching = found.source.parameters, found.matching
    known = {attribute.name for attribute in found.source.attributes}
    if parameters is not None:
        known |= {column for column, _ in parameters.columns}
        known |= {one.column for one in parameters.patterns}
        known |= {parameters.number, f"{parameters.number}pos"}
    named = {
        "conditions": {*matching.columns, *(n for one in matching.texts for n in one.attributes)},
        "PARTITION BY": {*found.source.key_attributes},
        "the order": {*found.source.order_by},
        "labels": {name for label in found.answer.labels for name in label.attributes},
        "SELECT": {*attributes_of(found.answer.expressions)},
        "windows": {*_measured(found)},
    }
    remembers = _remembered(listing)
    if remembers is not None:
        named["the listing"] = {*remembers.columns, *remembers.codes, *remembers.spelled}
        if not {*remembers.ranks} <= {*remembers.codes}:
            yield Violation(COLUMNS, f"of {remembers.ranks} only {remembers.codes} have codes")
    for where, names in named.items():
        if names - known:
            yield Violation(COLUMNS, f"{where}: {sorted(names - known)}")


def _measured(found: Plan) -> Iterator[str]:
    for window in found.matching.windows:
        yield from (name for name in (window.attribute, window.begin) if name is not None)


def _names(found: Plan) -> Violations:
    source = found.source
    columns = [attribute.name for attribute in source.attributes]
    for names in (columns, source.declared_types, found.answer.label_names, source.partition_by):
        if len(names) != len({*names}):
            yield Violation(ONCE, str(names))


def _numbers(found: Plan) -> Violations:
    source, matching, choice, answer = found.source, found.matching, found.choice, found.answer
    windows = range(len(matching.local_windows))
    hopped = [number for hops in matching.reaches for number in hops]
    places = [item.place for item in answer.expressions]
    columns = [column for kind in matching.kinds for column in kind.columns]
    yield from _in_range("hops", hopped, windows)
    yield from _in_range("deadlines", [d.window for d in choice.deadlines], windows)
    yield from _in_range("deadlines ruled out", [d.window for d in choice.ruled_out], windows)
    yield from _in_range("labels of kinds", columns, range(len(answer.label_names)))
    keys = range(len(source.partition_by))
    yield from _in_range("chosen keys", [key.place for key in source.chosen_keys], keys)
    yield from _in_range("expressions", places, range(len(answer.labels) + len(answer.expressions)))
    if len(matching.kinds) > 1 << matching.kind_bits:
        yield Violation(NUMBERS, f"{len(matching.kinds)} kinds in {matching.kind_bits} bits")
    labels = {
        node.label
        for item in answer.expressions
        for node in nodes_in(item.value)
        if isinstance(node, Aggregate | OwnAggregate)
    }
    labels |= {
        label
        for item in answer.expressions
        for node in nodes_in(item.value)
        if isinstance(node, OwnCall)
        for label in node.labels
    }
    if not labels <= {*answer.label_names}:
        yield Violation(NUMBERS, f"{sorted(labels)} are not all among {answer.label_names}")


def _in_range(what: str, numbers: Iterable[int], there: range) -> Violations:
    wrong = sorted({number for number in numbers if number not in there})
    if wrong:
        yield Violation(NUMBERS, f"{what}: {wrong} of {len(there)}")


def _types(found: Plan) -> Violations:
    source = found.source
    declared = {*source.declared_types}
    events: list[Relevant | Concern | Move] = [*(source.relevant or ()), *(source.told_apart or ())]
    if source.parameters is not None:
        course = source.parameters.course
        events += source.parameters.concerns or ()
        events += () if course is None else (*course.begins, *course.moves)
    for one in events:
        if (one.stream, one.type) not in declared:
            yield Violation(TYPES, f"{one.stream}.{one.type}")


def _kinds(found: Plan, listing: Listing) -> Violations:
    kinds = range(len(found.matching.kinds))
    match listing:
        case InRuns():
            yield from _in_range("kinds of places", listing.kinds, kinds)
        case LongestRuns():
            # The kind of symbol 0 is −1; no event of a run has that symbol.
            yield from _in_range("kinds of a run", listing.kinds[1:], kinds)
        case AdjoiningRuns():
            marked = [kind for kind in listing.kinds if kind >= 0]
            yield from _in_range("kinds of adjoining runs", marked, kinds)
    checks = _checks_of(listing)
    if checks is not None:
        for name, of_kinds in (
            ("supports", checks.supports),
            ("absorbs", checks.absorbs),
            ("looks", checks.looks),
            ("rounds", checks.rounds),
        ):
            if of_kinds and len(of_kinds) != len(kinds):
                yield Violation(EACH_KIND, f"{name} of {len(of_kinds)} of {len(kinds)}")


def _checks_of(listing: Listing) -> Checked | None:
    match named(listing):
        case Checked() as checks:
            return checks
        case (
            LongestRuns(checks=checks) | AdjoiningRuns(checks=checks) | InWorlds(checks=checks)
        ) if (checks is not None):
            return _checks_of(checks)
        case _:
            return None


def _remembered(listing: Listing) -> Remembers | None:
    match named(listing):
        case ByDefinition(remembers=remembers):
            return remembers
        case InWorlds(definition=definition) if definition is not None:
            return _remembered(definition)
        case _:
            checks = _checks_of(listing)
            return None if checks is None else checks.remembers


def named(value: Any) -> Any:
    """The value, or what the module's name for it stands for."""
    return value.value if isinstance(value, Code) else value
