"""Which queries can have simultaneous events and code over piles.

The general engine's letters tell the places of events in their instants. A query of `;`, `:`, `+`
and OR does not need such letters, because a match takes at most one event of an instant. Its update
is that for ordered events, with one difference: the events of one instant read what was there
before the instant. So it finds exactly the runs of the automaton whose events have rising instants.

Two of these runs can be one match, and a match is reported once. A match is known by its start, its
end and its labels, and its start is now that of an instant. So a label must show each event that
begins or ends a match. Otherwise the general engine runs the query.
"""

from celc.automata.determinize import START
from celc.normal.normal_form import SUPPORT, shown
from celc.plan.program import Program
from celc.plan.strategy import BranchFree, ByDefinition, Checked, Keyed, StraightLine


def can_wait(program: Program) -> bool:
    """Whether a program for ordered events is right for simultaneous events too. It is, once its
    events read what was there before their instant."""
    if not isinstance(program.update, BranchFree | StraightLine | Keyed):
        return False
    if isinstance(program.listing, ByDefinition) or program.update.piles.most_removals:
        return False
    if program.query.compares and not isinstance(program.listing, Checked):
        return False  # this walk alone puts the matches of an instant together
    kinds = program.tables.kinds
    ends = {
        step.kind
        for steps in program.tables.steps
        for step in steps
        if START in step.sources or step.target is None
    }
    return all(shown(frozenset(kinds[kind].marks)) - {SUPPORT} for kind in ends)
