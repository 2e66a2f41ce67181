"""Windows inside a formula that hold for the whole match, as a WITHIN clause does.

`WITHIN[w](φ)` depends only on the start and the end of a match. AS, renaming, PROJECT, FILTER and
STRICT change neither. UNLESS keeps its left side, and an absence before or after a match keeps the
match. AND has the same match on both sides. So a window below these is a window of the whole
formula. The clause is the cheapest way to run it: updates drop partial matches that have left it, a
stream forgets events before it, and Spark can split the input by time. SELECT's selector comes
after the clause, so it makes no difference here. Nested selectors compare matches before they are
cut, so the search for windows stops there.
"""

from dataclasses import replace

from celc.core import formula as core
from celc.parse import syntax


def is_bounded(node: syntax.Formula) -> bool:
    """Whether a window inside a formula holds for all of it."""
    match node:
        case syntax.Within():
            return True
        case syntax.As() | syntax.Rename() | syntax.Project() | syntax.Filter():
            return is_bounded(node.operand)
        case syntax.AbsenceBefore() | syntax.AbsenceAfter():
            return is_bounded(node.operand)
        case syntax.Selector(strategy="STRICT"):
            return is_bounded(node.operand)
        case syntax.Unless():
            return is_bounded(node.left)
        case syntax.Disjunction():
            return all(map(is_bounded, node.operands))
        case syntax.Conjunction():
            operators = {joint.operator for joint in node.joints}
            sides = [node.first, *(joint.operand for joint in node.joints)]
            return operators == {"AND"} and any(map(is_bounded, sides))
        case _:
            return False


def lift_windows(
    clause: core.Window | None, formula: core.Formula
) -> tuple[core.Window | None, core.Formula]:
    """The window of a query, and its formula without the windows that this one replaces. `clause`
    is the window of WITHIN. A window with another measure stays in the formula."""
    windows, bare = _lifted(formula)
    if not windows:
        return clause, formula
    chosen = clause or windows[0]
    kept = []
    for window in windows:
        if not _measures_the_same(window, chosen):
            kept.append(window)
        elif window.size < chosen.size:
            chosen = window
    for window in reversed(kept):
        bare = core.Within(bare, window, window.span)
    return chosen, bare


def _measures_the_same(one: core.Window, other: core.Window) -> bool:
    # Not where one names the first order column and the other does not: the call may name others.
    return one.unit is other.unit and one.attribute == other.attribute


def _lifted(formula: core.Formula) -> tuple[tuple[core.Window, ...], core.Formula]:
    """The windows that hold for the whole of a formula, in the order of the text, and the rest."""
    match formula:
        case core.Within():
            windows, bare = _lifted(formula.operand)
            return (formula.window, *windows), bare
        case (
            core.As()
            | core.Rename()
            | core.Project()
            | core.Filter()
            | core.Selector(strategy="STRICT")
        ):
            windows, bare = _lifted(formula.operand)
            return windows, replace(formula, operand=bare) if windows else formula
        case core.AbsenceBefore() | core.AbsenceAfter():
            windows, bare = _lifted(formula.operand)
            return windows, replace(formula, operand=bare) if windows else formula
        case core.Unless():
            windows, bare = _lifted(formula.left)
            return windows, replace(formula, left=bare) if windows else formula
        case core.Conjunction():
            (left, bare_left), (right, bare_right) = _lifted(formula.left), _lifted(formula.right)
            windows = (*left, *right)
            both = replace(formula, left=bare_left, right=bare_right)
            return windows, both if windows else formula
        case _:
            return (), formula
