"""Makes the run of a program by choosing its five parts.

Matches that travel together to Spark (`spark/answers/factorised`) bring their own walk and answer.
"""

from dataclasses import replace
from typing import TypeAlias, assert_never

from celc_runtime.engine.definition.instants import Instants, instants_of
from celc_runtime.plan.strategy import (
    AdjoiningRuns,
    All,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InRuns,
    InWindow,
    InWorlds,
    Latest,
    LongestRuns,
    UnionLists,
    United,
)
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.run.answer.answers import AnswerOfRun, MatchRows, WorldRows, single_matches
from celc_runtime.run.answer.collapsed import CollapsedRows
from celc_runtime.run.answer.compact import CompactRows
from celc_runtime.run.answer.counted import CountedWalk
from celc_runtime.run.answer.limited import LimitedRows
from celc_runtime.run.answer.totals import TotalRows
from celc_runtime.run.choice.choices import ChoiceOfRun
from celc_runtime.run.choice.deadlines import Deadlines
from celc_runtime.run.choice.late_starts import LateStartChoice
from celc_runtime.run.choice.per_start import StartChoice
from celc_runtime.run.choice.starts import starts_of
from celc_runtime.run.freed_memory import keep_freed_memory
from celc_runtime.run.run import Run
from celc_runtime.run.source.event_source import EventSource
from celc_runtime.run.source.run_options import PLAIN, RunOptions
from celc_runtime.run.update.updates import UpdateOfRun, update_of
from celc_runtime.run.walk.adjoining_runs import AdjoiningRunsWalk
from celc_runtime.run.walk.by_definition import DefinitionWalk
from celc_runtime.run.walk.checked import CheckedWalk
from celc_runtime.run.walk.compact import compact_walk
from celc_runtime.run.walk.in_worlds import WorldsWalk
from celc_runtime.run.walk.latest import LatestWalk
from celc_runtime.run.walk.longest_runs import LongestRunsWalk
from celc_runtime.run.walk.united import UnitedCheckedWalk, UnitedWalk
from celc_runtime.run.walk.walks import AllWalk, RunsWalk, WalkOfRun
from celc_runtime.run.walk.window_walks import EarliestWalk, SelectorWalk

keep_freed_memory()  # once in a process, before there is a run

PartsOfRun: TypeAlias = tuple[EventSource, UpdateOfRun, WalkOfRun, ChoiceOfRun, AnswerOfRun]


def run_of(
    program: Program,
    options: RunOptions = PLAIN,
    *,
    walk: WalkOfRun | None = None,
    answer: AnswerOfRun | None = None,
) -> Run:
    """A new run, to be fed batch by batch. `walk`, `answer` replace those of the program."""
    return Run(program, *parts_of_run(program, options, walk, answer), options)


def parts_of_run(
    program: Program,
    options: RunOptions,
    walk: WalkOfRun | None = None,
    answer: AnswerOfRun | None = None,
) -> PartsOfRun:
    """The five parts of a new run. `walk`, `answer`: as for `run_of`."""
    plan = program.plan
    assert plan.source.parameters is None, "rows of a table are run as pairs"
    instants = _instants_of(program)
    source = EventSource(program, instants, options)
    update = update_of(program, first_position=options.first_position)
    if walk is None:
        walk = _walk_of(program, instants, source, with_letters=update.has_contexts)
    update.remember(walk.history)
    choice = _choice_of(program, walk, options)
    if answer is None:
        # Without places in the tables, matches start and end at single events.
        answer = _answer_of(
            program,
            walk,
            in_instants=plan.source.ties is not None and instants is None,
            choice=choice,
            knows_clock=_knows_clock(program, options),
        )
    return source, update, walk, choice, answer


def compact_run(program: Program, options: RunOptions = PLAIN) -> Run:
    """A run that returns its matches as graphs.

    Raises EventError if the query has no compact answers.
    """
    check(program, Route.COMPACT)
    in_instants = program.plan.source.ties is not None and _instants_of(program) is None
    answer = CompactRows(program, in_instants=in_instants)
    return run_of(program, options, walk=compact_walk(program), answer=answer)


def _instants_of(program: Program) -> Instants | None:
    """How the update knows events by their places in instants; None: it does not."""
    match program.update:
        case UnionLists(tables=tables) if len(tables.instants):
            return instants_of(tables.instants)
        case _:
            return None


def _walk_of(
    program: Program, instants: Instants | None, source: EventSource, *, with_letters: bool
) -> WalkOfRun:
    """The walk; `with_letters`: the update writes the letters of events."""
    plan, listing = program.plan, program.listing
    match listing:
        case All():
            return AllWalk()
        case InRuns():
            return RunsWalk(listing, plan)
        case Checked(unites=True):
            weighs = plan.answer.totals is not None
            return UnitedCheckedWalk(listing, plan, instants, weighs=weighs)
        case Checked():
            return CheckedWalk(listing, plan, instants)
        case InWindow():
            return SelectorWalk(listing, plan, with_letters=with_letters)
        case EarliestInWindow():
            return EarliestWalk(listing, plan, with_letters=with_letters)
        case Latest():
            return LatestWalk()
        case United(weighs=weighs):
            return UnitedWalk(weighs=weighs)
        case Counted(tables=tables):
            return CountedWalk(tables, plan)
        case LongestRuns():
            return LongestRunsWalk(listing, plan)
        case AdjoiningRuns():
            return AdjoiningRunsWalk(listing, plan)
        case ByDefinition():
            return DefinitionWalk(listing, plan, instants)
        case InWorlds():
            asked = program if plan.answer.totals is None else single_matches(program)
            return WorldsWalk(asked, source.row_name)
        case _:
            assert_never(listing)


def _choice_of(program: Program, walk: WalkOfRun, options: RunOptions) -> ChoiceOfRun:
    plan, deadlines = program.plan, None
    if (
        plan.choice.deadlines and walk.history is not None
    ):  # a formula without matches remembers nothing
        # A choice by starts asks for all matches, also for those that were decided before.
        since = options.since if plan.choice.per_start is None else None
        deadlines = Deadlines(program, walk.history, replace(options, since=since))
        walk.judge, walk.was_read = deadlines.judge, deadlines.was_read
    if plan.choice.per_start is None:
        return deadlines or ChoiceOfRun()
    if deadlines is None:
        return StartChoice(plan.choice.per_start, plan.matching.window, starts_of(plan))
    return LateStartChoice(plan, deadlines)


def _knows_clock(program: Program, options: RunOptions) -> bool:
    """Whether matches that no event of their partition decides are decided when it is over."""
    asked = program.plan.asks_for_clock
    return not asked or options.clock is not None or program.plan.choice.clock is not None


def _answer_of(
    program: Program,
    walk: WalkOfRun,
    *,
    in_instants: bool,
    choice: ChoiceOfRun,
    knows_clock: bool,
) -> AnswerOfRun:
    if program.plan.answer.totals is not None:
        return TotalRows(program, in_instants=in_instants)
    if isinstance(walk, WorldsWalk):
        return WorldRows(walk)
    if program.plan.answer.collapsed:
        return CollapsedRows(program, in_instants=in_instants)
    if program.plan.choice.rate is not None:
        return LimitedRows(
            program,
            in_instants=in_instants,
            knows_clock=knows_clock,
            given_before=lambda: choice.given_before,
        )
    return MatchRows(program, in_instants=in_instants)
