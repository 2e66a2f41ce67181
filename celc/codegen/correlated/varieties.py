"""Bounds on numbers of different values → the functions that compare values."""

from collections.abc import Sequence

from celc.codegen.correlated.checks import CheckCode
from celc.normal.conditions.growing import VarietyBound


def holds_lines(bounds: Sequence[VarietyBound], writer: CheckCode) -> list[str]:
    """The body of `holds`: for each bound, whether an event with some `roles` has a value."""
    lines = []
    for number, bound in enumerate(bounds):
        lines.append(f"if number == {number}:")
        if bound.asked is not None:
            lines += [f"    if not roles & {1 << writer.bit(bound.asked)}:", "        return -2"]
        known = f"{writer.sets.code_of(bound.attribute)}[here] >= 0"
        if not bound.is_text:
            known = f"{writer.sets.column_of(bound.attribute)[1]}[here]"
        lines.append(f"    if roles & {1 << writer.bit(bound.role)} and {known}:")
        lines.append("        return here")
    return lines


def same_lines(bounds: Sequence[VarietyBound], writer: CheckCode) -> list[str]:
    """The body of `same`: for each bound, whether two events have one value."""
    lines = []
    for number, bound in enumerate(bounds):
        lines.append(f"if number == {number}:")
        if bound.is_text:
            code = writer.sets.code_of(bound.attribute)
            lines.append(f"    return {code}[one] == {code}[other]")
            continue
        column, _ = writer.sets.column_of(bound.attribute)
        a, b = f"{column}[one]", f"{column}[other]"
        lines.append(f"    return {a} == {b} or ({a} != {a} and {b} != {b})")
    return lines


def varieties_of(bounds: Sequence[VarietyBound]) -> tuple[tuple[int, int, bool], ...]:
    """The least and the most numbers, and whether each match is asked."""
    return tuple((bound.least, bound.most, bound.asked is None) for bound in bounds)
