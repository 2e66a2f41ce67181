"""The deadlines of a query: when a match with an absence at its end is decided."""

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import formulas_in
from celc.normal import normal_form as lp
from celc.normal.traversal import forms_in
from celc.plan.strategy import ByDefinition, Checked, Listing


@frozen
class Deadline:
    """A match is decided when `length` has passed since its end, or since its start with
    `from_start`."""

    length: core.Window
    from_start: bool


def deadlines_of(listing: Listing) -> tuple[Deadline, ...]:
    """The deadlines of the matches that a listing can find, each once. An absence at the end of a
    branch without matches sets no deadline."""
    match listing:
        case ByDefinition(form=form):
            parts = (part for part in forms_in(form) if isinstance(part, lp.AbsenceAfter))
            found = (Deadline(part.length, part.from_start) for part in parts)
            return tuple(dict.fromkeys(found))
        case Checked(after=after):
            return tuple(dict.fromkeys(Deadline(one.length, one.from_start) for one in after))
        case _:
            return ()


def written_deadlines(formula: core.Formula) -> tuple[Deadline, ...]:
    """The deadlines of all absences at the ends of a formula, each once, in the order of the text.
    The columns of the answer depend on these, whatever matches the conditions leave."""
    found = (
        Deadline(part.length, part.from_start)
        for part in formulas_in(formula)
        if isinstance(part, core.AbsenceAfter)
    )
    return tuple(dict.fromkeys(found))
