"""The events of which streams are made for a search: a small domain that tells conditions apart.

Of all combinations of the candidates for attributes one event stays for each way to satisfy the
conditions on single events, and for each combination of values that are compared between events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice, product
from math import prod
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import ArrayType, MapType, StructType

from celc.compare.conditions import Asked, predicate_written_out
from celc.compare.sides import Side
from celc.compare.values import INFINITE, MOST_CONSTANTS, candidates, default
from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.terms import nodes_named_in
from celc.core.traversal import map_leaves
from celc.driver.pipeline import Stages

MOST_COMBINATIONS = 3000  # of the values of one event type; of more a sample is taken

TypeKey = tuple[str, str]


@frozen
class Letter:
    """An event without its times: its type and the values that matter.

    `symbols`: its symbol class in each query that is run, None where it is not known. Two queries
    do not tell apart events with equal symbols and `compared` values.
    """

    type: TypeKey
    values: Mapping[str, Any]
    symbols: tuple[int | None, ...]
    compared: tuple[Any, ...] = ()


@frozen
class Domain:
    """The events of a search. `values`: the candidates of each attribute. `sampled`: event
    types of which not every combination of candidates was looked at. `is_exact`: whether any event
    has the symbols of one of these, in all queries at once."""

    letters: tuple[Letter, ...]
    values: Mapping[str, tuple[Any, ...]]
    types: Mapping[str, core.DataType] = field(default_factory=dict)
    sampled: tuple[str, ...] = ()
    is_exact: bool = False


class _NotKnown(Exception):
    """A condition cannot be decided for an event alone."""


def domain_of(
    sides: Sequence[Side], asked: Asked, spreads: Mapping[str, tuple[int, ...]]
) -> Domain:
    """The events over which queries are compared.

    `spreads`: attributes that are given as a distance from a clock, with the distances to try.
    """
    types: dict[TypeKey, core.EventType] = {}
    for side in sides:
        for key, event_type in side.types.items():
            types.setdefault(key_of(side, key), event_type)
    read = [stages for side in sides for stages in side.read]
    keys = _keys(sides)
    values: dict[str, tuple[Any, ...]] = {}
    named: dict[str, core.DataType] = {}
    letters: dict[Any, Letter] = {}
    sampled: list[str] = []
    for key, event_type in types.items():
        names = []
        for attribute in event_type.attributes:
            name = attribute.name
            if name in asked.clocks and name not in spreads:
                continue
            named.setdefault(name, attribute.type)
            found = spreads.get(name) or values.get(name) or _values(attribute, asked, keys)
            if found:
                values[name] = found
                names.append(name)
        lists = [values[name] for name in names]
        if prod(map(len, lists)) > MOST_COMBINATIONS:
            sampled.append(event_type.name)
        truths = [_SymbolOf(stages, event_type, asked) for stages in read]
        told_apart = (*asked.several, *spreads, *keys)
        compared = [name for name in names if name in told_apart]
        for combination in _combinations(lists):
            event = dict(zip(names, combination, strict=True))
            symbols = tuple(symbol(event) for symbol in truths)
            letter = Letter(key, event, symbols, tuple(map(repr, map(event.get, compared))))
            letters.setdefault(_identity(letter), letter)
    made = tuple(letters.values())
    known = all(None not in letter.symbols for letter in made)
    exact = known and not sampled and all(_cut_by_values(stages, asked) for stages in read)
    return Domain(made, values, named, tuple(sampled), exact)


def _values(
    attribute: core.AttributeDeclaration, asked: Asked, keys: Mapping[str, bool]
) -> tuple[Any, ...]:
    """The values of an attribute; none of one that does not matter. A key by which all queries are
    partitioned has one value, unless conditions ask for it."""
    name, type = attribute.name, attribute.type
    if name in asked.used:
        return candidates(name, type, asked)
    if name not in keys:
        return ()
    if keys[name]:
        return candidates(name, type, Asked(several={name: None}, used={name: None}))
    return (default(type),)


def _identity(letter: Letter) -> Any:
    """What is equal for events that no query tells apart."""
    if all(symbol == 0 for symbol in letter.symbols):
        return "no query asks for it"
    if None in letter.symbols:
        return letter.type, tuple(map(repr, letter.values.values()))
    return letter.type, letter.symbols, letter.compared


def _cut_by_values(stages: Stages, asked: Asked) -> bool:
    """Whether the candidates of each attribute have a value from each piece into which conditions
    on single events cut its values."""
    return all(
        _is_cut(predicate_written_out(predicate, stages.query), asked)
        for conditions in stages.alphabet.types
        for group in conditions.groups
        for clause in group
        for predicate in clause.predicates
    )


def _is_cut(predicate: core.Predicate, asked: Asked) -> bool:
    nodes = nodes_named_in(predicate)
    leaves = [one for one in nodes if isinstance(one, core.AttributeValue)]
    if all(leaf.type is core.DataType.BOOLEAN or leaf.attribute == core.TYPE for leaf in leaves):
        return True
    plain = isinstance(predicate, core.Comparison | core.Membership | core.NullTest)
    if not plain or len(leaves) != 1 or leaves[0].attribute in asked.clocks:
        return False
    if not all(isinstance(one, core.AttributeValue | core.Constant | core.Cast) for one in nodes):
        return False
    casts = [one for one in nodes if isinstance(one, core.Cast)]
    if any((one.operand.type, one.type) not in core.EXACT_CASTS for one in casts):
        return False
    constants = asked.constants.get(leaves[0].attribute, {})
    if len(constants) * 2 > MOST_CONSTANTS or any(value in INFINITE for value, _ in constants):
        return False
    if leaves[0].type in (core.DataType.STRING, core.DataType.BINARY):
        return not isinstance(predicate, core.Comparison) or predicate.operator in ("=", "!=")
    return True


def key_of(side: Side, key: TypeKey) -> TypeKey:
    """An event type as both sides know it: by its name, and its stream where that is needed."""
    return key if side.query.needs_stream_column else ("", key[1])


def _keys(sides: Sequence[Side]) -> dict[str, bool]:
    """The attributes by which queries are partitioned, and whether some are not."""
    found: dict[str, int] = {}
    count = 0
    for side in sides:
        for stages in side.read:
            count += 1
            for name in {name for key in stages.query.partition_by for name in key.attributes}:
                found[name] = found.get(name, 0) + 1
    return {name: times < count for name, times in found.items()}


def _combinations(lists: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """All combinations, those of the first values first, or a sample of them."""
    if prod(map(len, lists)) <= MOST_COMBINATIONS:
        yield from product(*lists)
        return
    chosen = random.Random(len(lists))
    plain = [one[0] for one in lists]
    for place, one in enumerate(lists):
        for value in one:
            yield (*plain[:place], value, *plain[place + 1 :])
    yield from islice(
        (tuple(chosen.choice(one) for one in lists) for _ in iter(int, 1)), MOST_COMBINATIONS
    )


class _SymbolOf:
    """The symbol class of an event of one type in one query."""

    def __init__(self, stages: Stages, event_type: core.EventType, asked: Asked) -> None:
        self._groups: list[list[list[Callable[[Mapping[str, Any]], bool]]]] = []
        self._numbers: dict[int, int] | None = None
        several = stages.query.needs_stream_column
        for conditions in stages.alphabet.types:
            known = conditions.type
            if known.name == event_type.name and (not several or known.stream == event_type.stream):
                self._numbers = {
                    symbol.truth: number for number, symbol in stages.alphabet.numbered(known)
                }
                self._groups = [
                    [
                        [decided_by(one, stages.query, known, asked) for one in clause.predicates]
                        for clause in group
                    ]
                    for group in conditions.groups
                ]

    def __call__(self, event: Mapping[str, Any]) -> int | None:
        """Its number; None where a condition is not known to hold or not."""
        if self._numbers is None:
            return 0
        try:
            truth = sum(
                1 << number
                for number, group in enumerate(self._groups)
                if all(any(holds(event) for holds in clause) for clause in group)
            )
        except _NotKnown:
            return None
        return self._numbers.get(truth, 0)


def decided_by(
    predicate: core.Predicate, query: core.Query, event_type: core.EventType, asked: Asked
) -> Callable[[Mapping[str, Any]], bool]:
    """The function that says whether the predicate is TRUE of an event, given its values by name;
    attributes without a value are NULL. It remembers what it was asked, and raises _NotKnown where
    the times of a stream decide."""
    written = predicate_written_out(predicate, query)
    added = frozenset(asked.clocks)
    if query.parameters is not None:
        added |= query.parameters.columns_added
    names = sorted(
        {one.attribute for one in nodes_named_in(written) if isinstance(one, core.AttributeValue)}
    )
    told: dict[tuple[str, ...], bool | None] = {}

    def decide(event: Mapping[str, Any]) -> bool | None:
        def value(leaf: core.Expression) -> core.Expression:
            if not isinstance(leaf, core.AttributeValue) or leaf.attribute in added:
                raise _NotKnown
            if isinstance(leaf.type, ArrayType | MapType | StructType):
                raise _NotKnown
            if leaf.attribute == core.TYPE:
                return core.Constant(core.text_of_type(event_type), core.DataType.STRING, leaf.span)
            return core.Constant(event.get(leaf.attribute), leaf.type, leaf.span)

        try:
            return fold_predicate(map_leaves(written, value))
        except (_NotKnown, AssertionError):
            return None

    def holds(event: Mapping[str, Any]) -> bool:
        key = tuple(repr(event.get(name)) for name in names)
        if key not in told:
            told[key] = decide(event)
        found = told[key]
        if found is None:
            raise _NotKnown
        return found

    return holds
