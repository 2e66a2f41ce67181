"""What the names of a query mean: its event types, the labels of `*`, and names without meaning.

The checks here are those that tell a well-formed query from one without a meaning; they are not
the compiler's (no types of expressions, no warnings).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from . import nodes as n
from .values import CelError, Kind


class Schema:
    """The event types of a query's streams, and the kind of each attribute."""

    def __init__(self, file: n.File, streams: tuple[str, ...] | None) -> None:
        wanted = file.streams if streams is None else streams
        for stream in wanted:
            if stream not in file.streams:
                raise CelError(f"no stream is called {stream}")
        self.types = [one for one in file.types if one.stream in wanted]
        self.kinds: dict[str, Kind] = {}
        for event_type in self.types:
            for name, kind in event_type.attributes.items():
                if self.kinds.setdefault(name, kind) != kind:
                    raise CelError(f"{name} has two types")

    def type_of(self, event: Mapping[str, object]) -> n.EventType | None:
        """The declared type of an event of the table; None where it has no position."""
        name, stream = event.get("type"), event.get("stream")
        if name is None and len(self.types) == 1:
            name = self.types[0].name
        found = [one for one in self.types if one.name == name and stream in (None, one.stream)]
        if len(found) > 1:
            raise CelError(f"{name} is a type of several streams: the event must name its stream")
        return found[0] if found else None

    def has_type(self, atom: n.Atom) -> bool:
        """Whether the atom names a type of these streams."""
        return any(
            one.name == atom.type and atom.stream in (None, one.stream) for one in self.types
        )


class _Kept(NamedTuple):
    place: int
    label: str
    is_type: bool


def star(formula: n.Formula) -> tuple[str, ...]:
    """The labels that `SELECT *` keeps, in order of first appearance.

    Labels made with AS or by renaming or named in a PROJECT, and the type names of atoms under no
    AS, each only as far as it reaches the top of the formula.
    """
    labels = [kept.label for kept in sorted(_kept(formula))]
    return tuple(dict.fromkeys(labels))


def _kept(formula: n.Formula) -> list[_Kept]:
    match formula:
        case n.Atom():
            return [_Kept(formula.place, formula.type, True)]
        case n.As():
            inside = [kept for kept in _kept(formula.body) if not kept.is_type]
            return [*inside, _Kept(formula.place, formula.label, False)]
        case n.OtherEvent():
            return []
        case n.Project():
            return [_Kept(place, label, False) for label, place in formula.kept]
        case n.Rename():
            inside = [kept for kept in _kept(formula.body) if kept.label != formula.old]
            return [*inside, _Kept(formula.place, formula.new, False)]
        case n.Unless():
            return _kept(formula.left)
        case n.Filter() | n.Within() | n.Repeat() | n.Selector():
            return _kept(formula.body)
        case n.NotBefore() | n.NotAfter():
            return _kept(formula.body)
        case n.Then() | n.Next() | n.Or() | n.And() | n.All() | n.NotBetween():
            return _kept(formula.left) + _kept(formula.right)
        case n.First():
            return _kept(formula.left) + _kept(formula.body)
    raise CelError(f"no labels for {formula}")


def kept_labels(query: n.Query) -> tuple[str, ...]:
    """The labels that are columns of the query's output."""
    if query.per is not None:
        # Totals are of matches with all their labels.
        return tuple(sorted(query.formula.labels))
    if query.items is None:
        return star(query.formula)
    return tuple(item.label for item in query.items if isinstance(item, n.LabelItem))


def projected_labels(query: n.Query) -> frozenset[str]:
    """The labels that SELECT projects on: those of its list, in expressions too."""
    labels = set(kept_labels(query))
    for item in query.items or ():
        if isinstance(item, n.ExpressionItem):
            labels |= labels_of_expression(item.expression)
    return frozenset(labels)


def labels_of_expression(expression: n.Expression) -> frozenset[str]:
    """The labels that the expression mentions."""
    return frozenset(
        part.label
        for part in n.parts(expression)
        if isinstance(part, n.Attribute | n.Previous | n.HasType | n.Aggregate | n.Total)
        and part.label is not None
    )


def check(query: n.Query, schema: Schema) -> None:
    """Raise CelError where a name in the query has no meaning."""
    _check_formula(query.formula, schema, query.formula.labels, frozenset())
    types = {one.name for one in schema.types}
    missing = projected_labels(query) - query.formula.labels
    if missing:
        raise CelError(f"SELECT: nothing binds {_listed(missing)}")
    names = list(kept_labels(query)) if query.per is None else []
    for item in query.items or ():
        if isinstance(item, n.ExpressionItem):
            names.append(item.name)
            _check_attributes([item.expression], schema)
        for attribute in item.attributes or () if isinstance(item, n.LabelItem) else ():
            _check_attribute(attribute, schema)
    taken = {"start_pos", "end_pos", "start_time", "end_time"}
    taken |= {"matches"} if query.collapsed else set()
    taken |= {"span_start", "span_end"} if isinstance(query.per, int) else set()
    columns = [key[0].lower() for key in query.partition_by]
    if len({*columns}) < len(columns):
        raise CelError("PARTITION BY: two keys would have one column")
    taken |= {*columns}
    for name in names:
        if name.lower() in taken:
            raise CelError(f"two columns of the output would be called {name}")
        taken.add(name.lower())
    made = {name for name, _ in query.key_values}
    for key in query.partition_by:
        for one in schema.types if not made & {*key} else ():
            has = [name for name in key if name in one.attributes]
            if len(has) != 1:
                raise CelError(f"PARTITION BY: {one.name} has {len(has)} of {', '.join(key)}")
        if len({schema.kinds[name] for name in key if name in schema.kinds}) > 1:
            raise CelError(f"PARTITION BY: {', '.join(key)} have two types")
    if query.window is not None and query.window.attribute is not None:
        _check_attribute(query.window.attribute, schema)
    clashing = _made_labels(query.formula) & types
    if clashing:
        raise CelError(f"{_listed(clashing)}: a label must not be called like an event type")


def _check_formula(
    formula: n.Formula, schema: Schema, visible: frozenset[str], left: frozenset[str]
) -> None:
    """Check a formula whose filters see the `visible` labels of the scopes around them, and those
    in a FIRST only what is to the `left` of it."""
    match formula:
        case n.Atom():
            if not schema.has_type(formula):
                raise CelError(f"no event type is called {formula.type}")
        case n.As():
            _check_formula(formula.body, schema, visible, left)
        case n.Within():
            _check_formula(formula.body, schema, visible, left)
            if formula.window.attribute is not None:
                _check_attribute(formula.window.attribute, schema)
        case n.Or() | n.And() | n.All():
            _check_formula(formula.left, schema, visible, left)
            _check_formula(formula.right, schema, visible, left)
        case n.Then() | n.Next():
            _check_formula(formula.left, schema, visible, left)
            _check_formula(formula.right, schema, visible, left | formula.left.labels)
        case n.First():
            _check_first(formula, schema, visible, left)
        case n.NotBetween():
            _check_formula(formula.left, schema, visible, left)
            _check_formula(formula.right, schema, visible, left | formula.left.labels)
            _check_formula(
                formula.absent, schema, visible | formula.absent.labels, left | formula.left.labels
            )
        case n.NotBefore() | n.NotAfter():
            _check_formula(formula.body, schema, visible, left)
            if isinstance(formula, n.NotAfter):
                left |= formula.body.labels
            _check_formula(formula.absent, schema, visible | formula.absent.labels, left)
            if formula.window is not None and formula.window.attribute is not None:
                _check_attribute(formula.window.attribute, schema)
        case n.Unless():
            _check_formula(formula.left, schema, visible, left)
            right = visible | formula.right.labels
            _check_formula(formula.right, schema, right, left | formula.left.labels)
        case n.Filter():
            _check_formula(formula.body, schema, visible, left)
            unbound = n.mentioned(formula.condition) - visible
            if unbound:
                raise CelError(f"FILTER: nothing in scope binds {_listed(unbound)}")
            for comparison in n.comparisons(formula.condition):
                _check_attributes(comparison.operands, schema)
        case n.Repeat() | n.Selector() | n.Project() | n.Rename() | n.OtherEvent():
            _check_formula(formula.body, schema, visible | formula.body.labels, left)
            if isinstance(formula, n.Project):
                missing = {label for label, _ in formula.kept} - formula.body.labels
            else:
                missing = {formula.old} if isinstance(formula, n.Rename) else set()
                missing -= formula.body.labels
            if missing:
                raise CelError(f"nothing binds {_listed(missing)} here")


def _check_first(
    formula: n.First, schema: Schema, visible: frozenset[str], left: frozenset[str]
) -> None:
    _check_formula(formula.left, schema, visible, left)
    left |= formula.left.labels
    own = formula.body.labels
    _check_formula(formula.body, schema, left | own, left)
    if formula.absent is not None:
        _check_formula(formula.absent, schema, left | own | formula.absent.labels, left)
    if formula.gap is not None:
        _check_formula(formula.gap, schema, visible | formula.gap.labels, left)


def _made_labels(formula: n.Formula) -> frozenset[str]:
    """The labels made with AS or by renaming anywhere in the formula."""
    match formula:
        case n.As():
            return _made_labels(formula.body) | {formula.label}
        case n.Rename():
            return _made_labels(formula.body) | {formula.new}
        case n.Filter() | n.Within() | n.Repeat() | n.Selector() | n.Project() | n.OtherEvent():
            return _made_labels(formula.body)
        case n.NotBetween():
            sides = _made_labels(formula.left) | _made_labels(formula.right)
            return sides | _made_labels(formula.absent)
        case n.NotBefore() | n.NotAfter():
            return _made_labels(formula.body) | _made_labels(formula.absent)
        case n.First():
            inside = [formula.left, formula.body, formula.absent, formula.gap]
            return frozenset().union(*(_made_labels(one) for one in inside if one is not None))
        case n.Then() | n.Next() | n.Or() | n.And() | n.All() | n.Unless():
            return _made_labels(formula.left) | _made_labels(formula.right)
    return frozenset()


def _check_attributes(expressions: Iterable[n.Expression], schema: Schema) -> None:
    for expression in expressions:
        for part in n.parts(expression):
            if isinstance(part, n.HasType):
                if not schema.has_type(n.Atom(part.stream, part.type, 0)):
                    raise CelError(f"no event type is called {part.type}")
            elif isinstance(part, n.Attribute | n.Previous | n.Aggregate | n.Total):
                if part.name is not None:
                    _check_attribute(part.name, schema)
                for name in part.more if isinstance(part, n.Aggregate) else ():
                    _check_attribute(name, schema)


def _check_attribute(name: str, schema: Schema) -> None:
    if name not in schema.kinds:
        raise CelError(f"no event type has an attribute {name}")


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(sorted(labels))
