"""Functions that a file declares by their types, and the calls of them.

What they compute is given with the file, as functions of Python (`celc.driver.own_functions`). So
a text alone has no code, and its types are checked by the declarations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from celc_runtime.values.functions import FUNCTIONS as TABLE

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import aggregates as messages
from celc.diagnostics.messages import types
from celc.diagnostics.messages.functions import FUNCTIONS
from celc.diagnostics.messages.totals import TOTALS
from celc.diagnostics.messages.wording import counted, quote
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.types.conversions import is_taken_as
from celc.resolve.types.written import type_of_written

ARRAY_TYPES = (
    *(one for one in core.NUMBERS if not isinstance(one, core.DecimalType)),
    *(core.DataType.BOOLEAN, core.DataType.TIMESTAMP),
)
"""The types of the elements of arrays, and of results."""


def declare_functions(
    nodes: Iterable[syntax.FunctionDeclaration], others: Collection[str], found: Diagnostics
) -> Mapping[str, core.OwnFunction | None]:
    """The functions of a file by name; of two with one name the first counts. None for a wrong
    declaration, which has been reported. `others`: the names of aggregates of the file."""
    declared: dict[str, core.OwnFunction | None] = {}
    places: dict[str, Span] = {}
    for node in nodes:
        name, span = node.name.text, node.name.span
        parameters = [_type(one, found) for one in node.parameters]
        result = _type(node.type, found)
        if name in declared or name in others or name.upper() in _TAKEN:
            found.add(messages.taken_function_name(name, span, places.get(name), name in others))
            continue
        known = tuple(one for one in parameters if one is not None)
        is_right = len(known) == len(parameters)
        declared[name] = core.OwnFunction(name, known, result) if result and is_right else None
        places[name] = span
    return declared


_TAKEN = frozenset((*FUNCTIONS, *TOTALS, *TABLE, "IF"))


def _type(node: syntax.WrittenType, found: Diagnostics) -> core.DataType | None:
    data_type = type_of_written(node, found)
    if data_type is None or data_type in ARRAY_TYPES:
        return data_type
    found.add(messages.type_in_function(data_type.value, [t.value for t in ARRAY_TYPES], node.span))
    return None


def own_call(
    node: syntax.Call,
    own: core.OwnFunction | None,
    arguments: Sequence[tuple[str, str, core.DataType] | None],
    use: str,
    found: Diagnostics,
) -> core.OwnCall | None:
    """A call of a function that the file declares; None where it or its declaration is wrong.

    arguments: the label, attribute and type of each, None for a wrong one.
    """
    name = node.function.text
    written = (node.argument, *node.more)
    if use == "select" and node.prior:
        found.add(types.previous_in_select("PRIOR", node.span))
        return None
    if node.distinct:
        text = found.source.slice(node.argument.span)
        found.add(messages.misplaced_distinct(name, text, node.span))
        return None
    taken = [one for one in arguments if one is not None]
    if own is None or len(taken) < len(arguments):
        return None
    if len(taken) != len(own.parameters):
        form = f"{name}({', '.join(f'{one.value}[]' for one in own.parameters)})"
        wanted = counted(len(own.parameters), "argument")
        found.add(messages.number_of_arguments(quote(name), wanted, form, node.span))
        return None
    labels = list(dict.fromkeys(label for label, _, _ in taken))
    if node.prior and len(labels) > 1:
        found.add(messages.prior_of_labels(name, labels, node.span))
        return None
    errors = found.errors
    for one, (_, _, data_type), parameter in zip(written, taken, own.parameters, strict=True):
        if not is_taken_as(data_type, parameter):
            found.add(
                messages.array_type(
                    name,
                    parameter.value,
                    data_type.value,
                    found.source.slice(one.span),
                    one.span,
                    [one.value for one in ARRAY_TYPES],
                )
            )
    if found.errors > errors:
        return None
    operands = tuple(
        core.Aggregate("LIST", label, attribute, node.prior, data_type, one.span, read=(data_type,))
        for one, (label, attribute, data_type) in zip(written, taken, strict=True)
    )
    return core.OwnCall(own, operands, node.span)
