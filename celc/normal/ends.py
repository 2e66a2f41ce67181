"""The ways to match a formula that differ in the absence at their end."""

from dataclasses import replace

from celc.normal import normal_form as lp
from celc.normal.normal_form import NormalForm

Way = tuple[NormalForm, lp.AbsenceAfter | None]
"""A form, and the absence at its end; None: it has none."""


def ways_of(form: NormalForm, *, selects: bool) -> tuple[Way, ...]:
    """The forms of which a form is the OR, one for each absence at an end.

    Empty where there is no such absence. With `selects` the outermost selector is that of SELECT.
    The forms are then those of its operand, because it compares matches with labels that SELECT
    leaves out.
    """
    if selects and isinstance(form, lp.Relabel):
        form = form.operand
    if selects and isinstance(form, lp.Selected):
        form = form.operand
    found = _ways(form)
    return found if any(absence is not None for _, absence in found) else ()


def _ways(form: NormalForm) -> tuple[Way, ...]:
    match form:
        case lp.AbsenceAfter():
            return ((form, form),)
        case lp.Disjunction():
            by_absence: dict[lp.AbsenceAfter | None, list[NormalForm]] = {}
            for operand in form.operands:
                for part, absence in _ways(operand):
                    by_absence.setdefault(absence, []).append(part)
            return tuple((_either(parts, form), absence) for absence, parts in by_absence.items())
        case lp.Relabel() | lp.Where() | lp.Correlated() | lp.Scope() | lp.Within():
            return tuple(
                (replace(form, operand=part), absence) for part, absence in _ways(form.operand)
            )
        case _:
            return ((form, None),)


def _either(parts: list[NormalForm], form: lp.Disjunction) -> NormalForm:
    return parts[0] if len(parts) == 1 else replace(form, operands=tuple(parts))
