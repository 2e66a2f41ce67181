"""The stages of a compilation as text, for people to read."""

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import assert_never

from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.automaton import Automaton, EventPredicate, LetterSet, Transition
from celc.automata.determinize import START, DeterministicAutomaton, DetState
from celc.codegen.expressions.describe import (
    describe_letters,
    describe_listing,
    describe_state,
    describe_update,
)
from celc.codegen.updates.straight_line import pile_legend
from celc.core import formula as core
from celc.core.show import show_truth
from celc.core.verdict import Verdict
from celc.diagnostics.source import visible
from celc.driver.pipeline import Stages
from celc.interfaces.explain.correlation import across_lines
from celc.interfaces.explain.parameters import parameter_lines
from celc.normal import normal_form as lp
from celc.normal.normal_form import Disjunction, Event, Iteration, NormalForm, Sequence
from celc.normal.show import (
    show_clause,
    show_event,
    show_labels,
    show_length,
    show_size,
    show_window,
)
from celc.normal.traversal import operands_of
from celc.plan.program import Program
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    LongestRuns,
    StraightLine,
    UnionLists,
)
from celc.plan.tables import Kind, Tables


def dump_formula(stages: Stages, verdict: Verdict | None = None) -> str:
    """The query's name, what it is and costs, its clauses as resolved, and its formula in LP-normal
    form."""
    name, *clauses = query_lines(stages.query)
    lines = [name, *(verdict.lines() if verdict is not None else ()), *clauses]
    return text_of([*lines, "LP-normal form:", *form_lines(stages.normal_form, "  ")])


def query_lines(query: core.Query) -> list[str]:
    streams = [s.name for s in query.streams if s.name not in query.reads]
    lines = [f"query {query.name}"]
    if streams or not query.reads:
        lines.append(f"streams: {', '.join(streams)}")
    if query.reads:
        rows, ends = ", ".join(query.reads), query.order_by[0].name
        lines.append(f"reads the rows of: {rows} (each lasts from its start_time to its {ends})")
    if query.strategy != "ALL":
        lines.append(f"select: {query.strategy}")
    if query.per_start is not None:
        lines.append(f"select: {query.per_start}")
    if query.total is not None:
        lines.append(f"total: {', '.join(map(_total_item, query.total.items))}")
        lines.append(f"per: {query.total.per}")
        if query.total.having is not None:
            lines.append(f"having: {show_truth(query.total.having)}")
    else:
        kept = ", ".join(map(_output_item, query.output)) or "start and end only"
        lines.append(f"output: {kept}" + (", matches collapsed" if query.collapsed else ""))
    if query.partition_by:
        lines.append("partition by: " + ", ".join(map(str, query.partition_by)))
    if query.window is not None:
        lines.append("window: " + _window(query))
    if query.consume_by != "NONE":
        lines.append(f"consume by: {query.consume_by}")
    if query.limit is not None:
        lines.append(f"limit: {query.limit}")
    if query.rate is not None:
        length = query.rate.length
        per = "PARTITION" if length is None else f"{length.size:,} {length.unit.value}"
        lines.append(f"limit: {query.rate.count} PER {per}")
    if query.order_by:
        lines.append("order: " + ", ".join(f"{a.name} {a.type.value}" for a in query.order_by))
    is_made = query.begin in [core.AttributeDeclaration(d.name, d.type) for d in query.derived]
    if query.begin is not None and (is_made or not query.reads):
        # Streams with different starts have a column of their own.
        start = "own start" if is_made else query.begin.name
        lines.append(
            f"lasting: each event from its {start} to its {query.order_by[0].name}, read in the "
            "order of the ends; it is before those that start after its end"
        )
    return lines


def text_of(lines: Iterable[str]) -> str:
    """Lines as text. Names can hold any character, so those that control a terminal are escaped."""
    return "".join(visible(line) + "\n" for line in lines)


def _output_item(item: core.OutputLabel | core.OutputExpression) -> str:
    if isinstance(item, core.OutputExpression):
        return f"{item.text} AS {item.name}"
    return f"{item.label}[{', '.join(a.name for a in item.attributes)}]"


def _total_item(item: core.TotalItem) -> str:
    return f"{item.text} AS {item.name} {item.value.type.value}"


def _window(query: core.Query) -> str:
    window = query.window
    assert window is not None
    if window.unit is core.WindowUnit.EVENTS:
        return show_size(window)
    attribute = window.attribute or query.order_by[0]
    return f"{show_size(window)} on {attribute.name} {attribute.type.value}"


# Long: a case for each kind of form.
def form_lines(form: NormalForm, indent: str = "") -> list[str]:
    """A form, an operator or an event on each line, its parts indented."""
    match form:
        case Event():
            return [f"{indent}{show_event(form.type, form.clauses)} {show_labels(form.labels)}"]
        case Iteration():
            return [f"{indent}{_rounds(form)}", *form_lines(form.operand, indent + "  ")]
        case Disjunction():
            lines = [f"{indent}OR" if form.operands else f"{indent}nothing"]
            for operand in form.operands:
                lines += form_lines(operand, indent + "  ")
            return lines
        case Sequence():
            lines = [f"{indent}sequence"]
            for index, operand in enumerate(form.operands):
                if index:
                    lines.append(f"{indent}  {':' if form.contiguous[index - 1] else ';'}")
                lines += form_lines(operand, indent + "  ")
            return lines
        case lp.Conjunction() | lp.All():
            word = "AND" if isinstance(form, lp.Conjunction) else "ALL"
            return [f"{indent}{word}", *_inner(form, indent)]
        case lp.Unless():
            left, right = form_lines(form.left, indent + "  "), form_lines(
                form.right, indent + "  "
            )
            return [*left, f"{indent}UNLESS", *right]
        case lp.Absence():
            lines = [f"{indent}sequence", *form_lines(form.left, indent + "  "), f"{indent}  ; !"]
            lines += [*form_lines(form.middle, indent + "    "), f"{indent}  ;"]
            return [*lines, *form_lines(form.right, indent + "  ")]
        case lp.ThenFirst():
            return _first_lines(form, indent)
        case lp.AbsenceBefore():
            absent = form_lines(form.absent, indent + "    ")
            lines = [f"{indent}sequence", f"{indent}  !", *absent]
            lines.append(f"{indent}  {show_length(form.length)} ;")
            return [*lines, *form_lines(form.operand, indent + "  ")]
        case lp.AbsenceAfter():
            lines = [
                f"{indent}sequence",
                *form_lines(form.operand, indent + "  "),
                f"{indent}  ; !",
            ]
            lines += form_lines(form.absent, indent + "    ")
            counted = " from its start" if form.from_start else ""
            return [*lines, f"{indent}  {show_length(form.length)}{counted}"]
        case lp.Selected():
            return [f"{indent}{form.strategy}", *_inner(form, indent)]
        case lp.Relabel():
            return [f"{indent}{', '.join(map(_change, form.changes))}", *_inner(form, indent)]
        case lp.Where():
            return [f"{indent}where {_fact(form.fact)}", *_inner(form, indent)]
        case lp.Correlated():
            lines = [
                f"{indent}for every choice of positions {c}" for c in map(show_clause, form.clauses)
            ]
            return [*lines, *_inner(form, indent)]
        case lp.Within():
            return [f"{indent}{show_window(form.window)}", *_inner(form, indent)]
        case lp.MarkedEnds():
            first, last = show_labels(form.first), show_labels(form.last)
            return [f"{indent}first {first}, last {last}", *_inner(form, indent)]
        case lp.Scope():
            return [f"{indent}scope of {show_labels(form.labels)}", *_inner(form, indent)]
        case _:
            assert_never(form)


def _first_lines(form: lp.ThenFirst, indent: str) -> list[str]:
    lines = [f"{indent}sequence", *form_lines(form.left, indent + "  ")]
    if form.gap is not None:
        lines += [f"{indent}  ; !", *form_lines(form.gap, indent + "    ")]
    rounds = "" if (form.least, form.most) == (1, 1) else f" in rounds {_bounds(form)}"
    lines.append(f"{indent}  ; FIRST{rounds}")
    if form.absent is not None:
        lines += [f"{indent}    !", *form_lines(form.absent, indent + "      ")]
    return [*lines, *form_lines(form.chosen, indent + "    ")]


def _bounds(form: Iteration | lp.ThenFirst) -> str:
    """`+`, `{2,}`, `{3}`."""
    if (form.least, form.most) == (1, None):
        return "+"
    if form.least == form.most:
        return f"{{{form.least}}}"
    return f"{{{form.least},{'' if form.most is None else form.most}}}"


def _rounds(form: Iteration) -> str:
    """The sign of an iteration: `+`, `{2,}`, `:{3}`."""
    sign = _bounds(form)
    return f":{sign}" if form.contiguous else sign


def _inner(form: NormalForm, indent: str) -> list[str]:
    return [line for part in operands_of(form) for line in form_lines(part, indent + "  ")]


def _change(change: lp.LabelChange) -> str:
    match change:
        case lp.AddLabel():
            return f"AS {change.label}"
        case lp.AddRole():
            return f"role of {change.label}"
        case lp.AddToAll():
            return "role of each event"
        case lp.RenameLabel():
            return f"[{change.old} -> {change.new}]"
        case lp.KeepLabels() | lp.KeepSupport():
            return f"keep {show_labels(change.labels)}"
        case _:
            assert_never(change)


def _fact(fact: lp.Fact) -> str:
    match fact:
        case lp.SomeEvent():
            satisfies = "satisfies" if fact.holds else "fails"
            return f"some {fact.label} {satisfies} [{show_clause(fact.clause)}]"
        case lp.EndEvent():
            return f"the {fact.end.lower()} {fact.label} satisfies [{show_clause(fact.clause)}]"
        case lp.CountOf():
            counts = [str(n) for n, truth in enumerate(fact.truths) if truth]
            more = " or more" if fact.truths[-1] else ""
            return f"the count of {fact.label} is {', '.join(counts)}{more}"
        case lp.Not():
            return f"not ({_fact(fact.fact)})"
        case lp.AnyOf():
            return " or ".join(f"({_fact(part)})" for part in fact.facts)
        case _:
            assert_never(fact)


def dump_automaton(stages: Stages) -> str:
    """A CEA, a line for each transition, grouped by the state it leaves."""
    return text_of(automaton_lines(stages.automaton))


def automaton_lines(automaton: Automaton) -> list[str]:
    lines = [
        f"complex event automaton: {automaton.states} states, "
        f"{len(automaton.transitions)} transitions",
        f"initial {automaton.initial}, final {automaton.final}",
    ]
    if automaton.letters.machine.contexts > 1:
        lines.append(f"contexts, by the events before: {automaton.letters.machine.contexts}")
    for state in range(automaton.states):
        for transition in automaton.transitions:
            if transition.source == state:
                text = transition_text(automaton, transition)
                lines.append(f"  {state} --{text}--> {transition.target}")
    return lines


def transition_text(automaton: Automaton, transition: Transition) -> str:
    """A transition's condition and marks: `T[value > 40.0] / {hot}`; ○ is an unmarked event."""
    marks = show_labels(transition.marks) if transition.marks or transition.names else "○"
    match transition.predicate:
        case None:
            return f"any / {marks}"
        case EventPredicate():
            return (
                f"{show_event(transition.predicate.type, transition.predicate.clauses)} / {marks}"
            )
        case LetterSet():
            return f"{describe_letters(automaton.letters, automaton.mask(transition))} / {marks}"
        case _:
            assert_never(transition.predicate)


def dump_deterministic(stages: Stages) -> str:
    """The I/O-deterministic CEA after minimisation, with its size before."""
    automaton = stages.minimal
    size = f"{automaton.states} states ({stages.full.states} before minimisation)"
    if automaton.as_met:
        size = f"{automaton.states} states, of which a run makes sets as it meets them"
    lines = [
        f"I/O-deterministic automaton: {size}, {automaton.symbols} symbol classes",
        "symbol classes:",
        *(f"  {number}  {text}" for number, text in enumerate(describe_classes(stages))),
        "states:",
    ]
    for state in range(automaton.states):
        lines.append(f"  {state}  {describe_state(stages.program, DetState(state))}")
        lines += [f"      {text}" for text in move_lines(automaton, DetState(state))]
    return text_of(lines)


def describe_classes(stages: Stages) -> list[str]:
    masks = [0] * stages.minimal.symbols
    for letter, number in enumerate(stages.minimal.class_of):
        masks[number] |= 1 << letter
    return [describe_letters(stages.automaton.letters, mask) for mask in masks]


def move_lines(automaton: DeterministicAutomaton, state: DetState) -> list[str]:
    """The moves out of a state; moves to one target are joined."""
    by_text: dict[str, list[int]] = {}
    for symbol, row in enumerate(automaton.moves[state]):
        if state != START and not row:
            by_text.setdefault("the match is lost", []).append(symbol)
        for move in row:
            marks = show_labels(move.marks) if move.marks or state == START else "○"
            targets = ["match"] * move.accepts
            targets += [f"state {move.target}"] if move.target is not None else []
            if targets == [f"state {state}"] and not move.marks:
                continue  # waiting, as in every state of `;`
            by_text.setdefault(f"/ {marks} --> {' and '.join(targets)}", []).append(symbol)
    return [f"{', '.join(map(str, symbols))} {text}" for text, symbols in by_text.items()]


def dump_tables(stages: Stages) -> str:
    """The transition tables, and the strategy with its reasons."""
    program = stages.program
    lines = [*table_lines(program.tables), *_strategy_lines(program), *parameter_lines(program)]
    return text_of(lines)


def table_lines(tables: Tables) -> list[str]:
    lines = [
        f"{tables.states} states, {tables.symbols} symbols",
        "symbol of each class: " + " ".join(map(str, tables.symbol_of)),
        "kinds of cells:",
        *kind_lines(tables.kinds),
        "steps (symbol: sources --kind--> target):",
    ]
    for symbol, steps in enumerate(tables.steps):
        for step in steps:
            sources = " ".join("start" if s == START else str(s) for s in step.sources)
            target = "match" if step.target is None else step.target
            lines.append(f"  {symbol}: {sources} --{step.kind}--> {target}")
    if tables.skips_are_identities:
        lines.append("unmarked events leave every state as it is")
    else:
        lines.append("state after an unmarked event, by state and symbol (.: the match is lost):")
        for state in range(1, tables.states):
            row = ["." if target is None else str(target) for target in tables.skip[state]]
            lines.append(f"  {state}: {' '.join(row)}")
    if tables.contexts is not None:
        lines.append("context after each symbol / letter of the symbol, by context:")
        for context, following in enumerate(tables.contexts.following):
            letters = tables.contexts.letters[context]
            pairs = [f"{after}/{letter}" for after, letter in zip(following, letters, strict=True)]
            lines.append(f"  {context}: {' '.join(pairs)}")
    return lines


def kind_lines(kinds: SequenceOf[Kind]) -> list[str]:
    """How events are marked: a line for each kind."""
    return [
        f"  {number}  {show_labels(kind.marks)}{' first' if kind.starts else ''}"
        for number, kind in enumerate(kinds)
    ]


def _strategy_lines(program: Program) -> list[str]:
    update, listing = program.update, program.listing
    lines = [f"update: {describe_update(update)}", f"  because {update.reason}"]
    match update:
        case UnionLists():
            pass
        case BranchFree(piles=plan) | StraightLine(piles=plan) | Keyed(piles=plan):
            lines += [f"  pile {pile.number}: {pile.comment}" for pile in pile_legend(plan)]
        case _:
            assert_never(update)
    lines += [f"listing: {describe_listing(listing)}", f"  because {program.listed_because}"]
    match listing:
        case EarliestInWindow(tables=earliest):
            lines.append(f"  {len(earliest.sets)} sets of states from which an end can be reached")
        case InWindow(tables=selection):
            lines.append(
                f"  the automaton has {selection.tables.states} states, its tracker "
                f"{len(selection.following)}"
            )
        case (
            All()
            | InRuns()
            | Checked()
            | Latest()
            | United()
            | Counted()
            | LongestRuns()
            | ByDefinition()
            | InWorlds()
        ):
            pass
        case _:
            assert_never(listing)
    return [*lines, *across_lines(program)]
