"""Bounds of sums → the function that weighs an event."""

from collections.abc import Sequence

from celc.codegen.correlated.checks import CheckCode
from celc.normal.conditions.sum_bounds import SumBound, Weight


def weigh_lines(bounds: Sequence[SumBound], writer: CheckCode) -> list[str]:
    """The body of `weigh`. For each bound it has the weight of an event with some `roles`, and the
    sum of the absolute values it is made of."""
    lines = []
    for number, bound in enumerate(bounds):
        lines.append(f"if number == {number}:")
        for weight in bound.weights:
            lines.append(f"    if roles & {1 << writer.bit(weight.role)}:")
            lines += [f"        {line}" for line in _lines_of(weight, writer)]
    return lines


def limits_of(bounds: Sequence[SumBound]) -> tuple[float, ...]:
    return tuple(bound.limit for bound in bounds)


def _lines_of(weight: Weight, writer: CheckCode) -> list[str]:
    constant = repr(weight.constant)
    if weight.attribute is None:
        return [f"weight += {constant}", f"size += {abs(weight.constant)!r}"]
    column, valid = writer.sets.column_of(weight.attribute)
    value = f"float({column}[here])"
    return [
        f"if {valid}[here]:",
        f"    weight += {weight.factor!r} * {value} + {constant}",
        f"    size += {weight.size!r} * abs({value}) + {abs(weight.constant)!r}",
    ]
