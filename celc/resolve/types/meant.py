"""Conditions that people write and that mean something else: what was meant is reported.

`x.type = 'View'` asks for an attribute that no event has, and `x.ok || y.ok` joins two texts.
"""

from __future__ import annotations

from celc.core import formula as core
from celc.diagnostics.errors import Fix
from celc.diagnostics.messages import names, types
from celc.diagnostics.messages.wording import available, quote, written
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.schema import Schema
from celc.resolve.types.expressions import Site, attribute_type, binding_of, named_set

_MOST_WAYS = 4  # event types, of a CASE that a message offers

# --- the type of an event -------------------------------------------------------------------------


def asks_for_type(node: syntax.Comparison | syntax.InList, site: Site) -> bool:
    """Report `x.type = 'View'` and `x.type IN ('View', 'Cart')`, where no event has an attribute
    of this name. False: the condition is something else."""
    match node:
        case syntax.Comparison("=" | "!=", syntax.Attribute() as asked, other):
            texts = [other]
        case syntax.Comparison("=" | "!=", other, syntax.Attribute() as asked):
            texts = [other]
        case syntax.InList(syntax.Attribute() as asked):
            texts = [*node.items]
        case _:
            return False
    values = [one.value for one in texts if isinstance(one, syntax.TextLiteral)]
    label = site.inside if asked.label is None else asked.label.text
    if label is None or len(values) < len(texts) or site.declared is not None:
        return False
    name, schema = asked.attribute.text, site.schema
    known = [_type_called(value, schema) for value in values]
    is_declared = name in schema.types or name in schema.flawed
    if is_declared or (name.upper() != "TYPE" and None in known):
        return False
    if label in schema.declarations.parameters:
        return False
    bound = binding_of(label, (asked.label or asked).span, site)
    if bound is not None:
        negated = node.negated if isinstance(node, syntax.InList) else node.operator == "!="
        wrong = [quote(value) for value, one in zip(values, known, strict=True) if one is None]
        test = _test(label, [one for one in known if one is not None], negated)
        fixes: tuple[Fix, ...] = ()
        if wrong:
            listed = available("event types here", schema.names_of(schema.everything))
            hints = (f"no event type here is called {' or '.join(wrong)}", *listed)
        elif asked.label is None:
            hints = (f"it stands outside the brackets: {written(label)}[…] AND {test}",)
        else:
            hints, fixes = (f"write {test}",), (Fix(node.span, test),)
        _report(asked.attribute, label, bound.extent.types, hints, fixes, site)
    return True


def _type_called(value: str, schema: Schema) -> str | None:
    """The event type that a text names, capitals aside."""
    known = dict.fromkeys(event_type.name for event_type in schema.event_types)
    alike = [name for name in known if name.casefold() == value.casefold()]
    return value if value in known else alike[0] if len(alike) == 1 else None


def _report(
    name: syntax.Name,
    label: str,
    mask: int,
    hints: tuple[str, ...],
    fixes: tuple[Fix, ...],
    site: Site,
) -> None:
    of_types = site.schema.names_of(mask)
    site.found.add(names.unknown_attribute(name.text, label, of_types, (), name.span, hints, fixes))


def _test(label: str, event_types: list[str], negated: bool) -> str:
    test = "IS NOT" if negated else "IS"
    tests = [f"{written(label)} {test} {written(one)}" for one in event_types]
    joined = (" AND " if negated else " OR ").join(dict.fromkeys(tests))
    return joined if len(tests) == 1 else f"({joined})"


def selects_type(node: syntax.Expression, site: Site) -> bool:
    """Report `SELECT x.type AS t`. False: it is something else."""
    if not isinstance(node, syntax.Attribute) or node.label is None:
        return False
    label, name = node.label.text, node.attribute.text
    if name.upper() != "TYPE" or named_set(node, site) is not None:
        return False
    bound = binding_of(label, node.label.span, site)
    if bound is not None:
        of_types = site.schema.names_of(bound.extent.types)
        *others, last = of_types or [""]
        ways = [f"WHEN {written(label)} IS {written(one)} THEN {_text(one)}" for one in others]
        value = f"CASE {' '.join(ways)} ELSE {_text(last)} END" if others else _text(last)
        single = (bound.extent.least, bound.extent.most) == (1, 1) and last
        fits = single and len(of_types) <= _MOST_WAYS
        hints = (f"write {value}",) if fits else ()
        fixes = (Fix(node.span, value),) if fits else ()
        _report(node.attribute, label, bound.extent.types, hints, fixes, site)
    return True


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


# --- `||` -----------------------------------------------------------------------------------------


def joins_conditions(node: syntax.Comparison | syntax.Holds, site: Site) -> bool:
    """Report `a.ok || b.v > 3`, which joins a BOOLEAN to a text. False: it can be read so."""
    joins: list[Span] = []
    if isinstance(node, syntax.Holds):
        apart, other = _joined(node.value, joins, site), None
        apart = apart if joins else []
    else:
        left = _joined(node.left, joins, site)
        other = node.left if not joins else node.right
        apart = [*left[:-1], *_joined(node.right, joins, site)[1:]]
    if not any(_is_boolean(one, site) for one in apart):
        return False
    is_text = other is not None and _may_be_text(other, site)
    site.found.extend(types.joined_conditions(span, is_text=is_text) for span in joins)
    return not is_text


def _joined(node: syntax.Expression, joins: list[Span], site: Site) -> list[syntax.Expression]:
    """The operands of `a || b || c`, in order; their `||` are added to `joins`."""
    if not isinstance(node, syntax.Call) or site.found.source.slice(node.function.span) != "||":
        return [node]
    before = _joined(node.argument, joins, site)
    joins.append(node.function.span)
    return before + [part for one in node.more for part in _joined(one, joins, site)]


def _is_boolean(node: syntax.Expression, site: Site) -> bool:
    return isinstance(node, syntax.BooleanLiteral) or _type_of(node, site) is core.DataType.BOOLEAN


def _may_be_text(node: syntax.Expression, site: Site) -> bool:
    match node:
        case syntax.TextLiteral():
            return True
        case syntax.Attribute():
            return _type_of(node, site) in (None, core.DataType.STRING)
        case _:
            return not isinstance(node, syntax.IntegerLiteral | syntax.DoubleLiteral)


def _type_of(node: syntax.Expression, site: Site) -> core.DataType | None:
    """The type of an attribute of a label; None of all else."""
    if not isinstance(node, syntax.Attribute) or site.declared is not None:
        return None
    label = site.inside if node.label is None else node.label.text
    if label is None or named_set(node, site) is not None:
        return None
    return attribute_type(label, (node.label or node).span, node.attribute, site)
