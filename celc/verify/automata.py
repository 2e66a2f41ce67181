"""The invariants of alphabets and automata."""

from collections.abc import Iterator, Sequence

from celc.automata.automaton import Automaton
from celc.automata.determinize import START, DeterministicAutomaton
from celc.automata.graphs import FINAL, INITIAL, Edge, numbers_between
from celc.automata.letters import ContextMachine, Letters, Mask
from celc.automata.minimise import minimise
from celc.automata.predicates import Alphabet, TypeConditions
from celc.automata.select import Selection
from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.formula import Expression
from celc.core.terms import constants_of, nodes_named_in
from celc.core.traversal import Leaf, map_leaves
from celc.diagnostics.deadline import look
from celc.normal.normal_form import EventClause, NormalForm
from celc.normal.traversal import events_of
from celc.verify.violations import Violation, Violations

# --- alphabets ------------------------------------------------------------------------------------

OTHERS_FIRST = "symbol 0, and no other, is the class of events that no atom asks for"
DISJOINT = "no event falls into two classes"
GROUPS = "a condition on a type is in one group, and an atom asks for whole groups"
EXHAUSTIVE = "an event that an atom asks for falls into a class"

_MOST_SAMPLES = 24
# events of a type, times predicates, that EXHAUSTIVE tries; a check must cost less than the pass
_MOST_EVALUATED = 4_000


def alphabet(found: Alphabet, form: NormalForm) -> Violations:
    """Symbols are disjoint, and cover the events that `form` asks for.

    The automaton relies on it, because it reads symbols instead of events. Trying all possible
    events would take exponential time. So the check tries the constants that the conditions name,
    each in its attribute, with all other attributes NULL.
    """
    if not found.symbols or (found.symbols[0].type, found.symbols[0].truth) != (None, 0):
        yield Violation(OTHERS_FIRST, "symbol 0 is another one")
    if any(symbol.type is None for symbol in found.symbols[1:]):
        yield Violation(OTHERS_FIRST, "another one is as well")
    if len({(one.type.stream, one.type.name) for one in found.types}) < len(found.types):
        yield Violation(DISJOINT, "a type of events has conditions twice")
    for conditions in found.types:
        truths = [symbol.truth for _, symbol in found.numbered(conditions.type)]
        name = conditions.type.name
        if len(set(truths)) < len(truths):
            yield Violation(DISJOINT, f"two of {name} are for the same conditions")
        if any(truth >> len(conditions.groups) for truth in truths):
            yield Violation(GROUPS, f"a class of {name} is for more of them than there are")
        clauses = [clause for group in conditions.groups for clause in group]
        if len(set(clauses)) < len(clauses):
            yield Violation(GROUPS, f"one on {name} is in two")
    for event in events_of(form):
        look()
        conditions = found.conditions_on(event.type)
        asked = conditions.bits(event.clauses)
        if {*event.clauses} != {
            clause
            for number, group in enumerate(conditions.groups)
            if asked >> number & 1
            for clause in group
        }:
            yield Violation(GROUPS, f"'{event.name}' asks for parts of some")
    yield from _exhaustive(found, form)


def _exhaustive(found: Alphabet, form: NormalForm) -> Violations:
    wanted: dict[tuple[str, str], set[int]] = {}
    for event in events_of(form):
        key = event.type.stream, event.type.name
        wanted.setdefault(key, set()).add(found.conditions_on(event.type).bits(event.clauses))
    for conditions in found.types:
        known = {symbol.truth for _, symbol in found.numbered(conditions.type)}
        needs = wanted.get((conditions.type.stream, conditions.type.name), set())
        for values in _sample_events(conditions):
            truth = _truth(conditions, values)
            if truth not in known and any(truth & need == need for need in needs):
                text = ", ".join(f"{name} = {value!r}" for name, value in values.items())
                part = f"{conditions.type.name} with {text or 'NULLs'} does not"
                yield Violation(EXHAUSTIVE, part)


def _sample_events(conditions: TypeConditions) -> Iterator[dict[str, object]]:
    """Values of attributes: first none, then each constant that is compared with its attribute."""
    all_of_type = [
        predicate
        for group in conditions.groups
        for clause in group
        for predicate in clause.predicates
    ]
    # Another library would have to match patterns, and it takes longer to import.
    matched = {
        node.attribute
        for predicate in all_of_type
        if isinstance(predicate, core.PatternMatch)
        for node in nodes_named_in(predicate)
        if isinstance(node, core.AttributeValue)
    }
    values = dict.fromkeys(
        (node.attribute, value)
        for predicate in all_of_type
        for node in nodes_named_in(predicate)
        if isinstance(node, core.AttributeValue) and node.attribute not in matched
        for value in constants_of(predicate)[:_MOST_SAMPLES]
        if _is_of(value, conditions.type.type_of(node.attribute))
    )
    most = min(_MOST_SAMPLES, _MOST_EVALUATED // max(1, len(all_of_type)))
    samples: list[dict[str, object]] = [{}]
    samples += ({name: value} for name, value in values)
    yield from samples[:most]


def _is_of(value: object, type: core.DataType | None) -> bool:
    match type:
        case core.DataType.DOUBLE:
            return isinstance(value, float)
        case core.DataType.INT | core.DataType.LONG:
            return isinstance(value, int) and -(2**31) <= value < 2**31
        case core.DataType.STRING:
            return isinstance(value, str)
        case _:
            return False


def _truth(conditions: TypeConditions, values: dict[str, object]) -> int:
    """The groups that an event satisfies, as bits. Constants decide them."""

    def value_of(node: Leaf) -> Expression:
        assert isinstance(node, core.AttributeValue)
        value = values.get(node.attribute)
        assert value is None or isinstance(value, int | float | str)
        return core.Constant(value, node.type, node.span)

    def satisfies(clause: EventClause) -> bool:
        look()
        return any(fold_predicate(map_leaves(p, value_of)) for p in clause.predicates)

    return sum(
        1 << number for number, group in enumerate(conditions.groups) if all(map(satisfies, group))
    )


# --- nondeterministic automata --------------------------------------------------------------------

ENDS = "nothing enters the initial state and nothing leaves the final one"
STATES = "transitions are between states that there are"
TRIMMED = "every state is on a way from the initial to the final one"
READS = "every transition reads a letter"
MARKS_SORTED = "the labels of a mark are sorted, each once"
CONTEXTS = "contexts are total: each has a next one for each symbol"


def automaton(found: Automaton) -> Violations:
    """No move enters the start or leaves the end, and every state lies between them.

    Determinisation relies on the ends: what reaches the final state is a match, and is not looked
    at again. A state that leads nowhere would cost it subsets.
    """
    states = range(found.states)
    yield from _machine(found.letters.machine, found.letters.symbols)
    for transition in found.transitions:
        source, target = transition.source, transition.target
        text = f"one goes from {source} to {target}"
        if source not in states or target not in states:
            yield Violation(STATES, text)
        if target == found.initial or source == found.final:
            yield Violation(ENDS, text)
        if transition.marks != tuple(sorted({*transition.marks})):
            yield Violation(MARKS_SORTED, f"{text} with {transition.marks}")
    moves = [(transition.source, transition.target) for transition in found.transitions]
    for state in {*states} - numbers_between(found.initial, found.final, moves).keys():
        yield Violation(TRIMMED, f"state {state} of {found.states} is on none")


def _machine(machine: ContextMachine, letters: int) -> Violations:
    for context, row in enumerate(machine.following):
        if len(row) != letters or not all(0 <= after < machine.contexts for after in row):
            yield Violation(CONTEXTS, f"context {context} has {len(row)} of {letters}")


# --- what selectors choose ------------------------------------------------------------------------

TRACKER_DETERMINISTIC = "a tracker has one next state for each letter"
STARTS = "each state of a tracker says which edges begin a match, and no other edge does"


def selection(found: Selection, letters: Letters) -> Violations:
    """The tracker is deterministic and total, and matches begin as it says.

    The listing of a window looks up the tracker's state at every event, and asks which matches
    begin there.
    """
    states = len(found.tracker)
    for state, moves in enumerate(found.tracker):
        yield from _partition(state, moves, letters.all)
        if any(target not in range(states) for _, target in moves):
            yield Violation(STATES, f"tracker state {state} has a move out of all")
    if len(found.starts) != states:
        yield Violation(STARTS, f"{len(found.starts)} of {states} do")
    if found.graph.edges[INITIAL]:
        yield Violation(STARTS, f"{len(found.graph.edges[INITIAL])} begin whatever it says")
    for row in (*found.starts, *found.graph.edges):
        yield from _edges(row, found.graph.states, letters.all)
    if found.graph.edges[FINAL]:
        yield Violation(ENDS, "a chosen match goes on after its end")


def _partition(state: int, moves: Sequence[tuple[Mask, int]], everything: Mask) -> Violations:
    union = 0
    for mask, _ in moves:
        if union & mask:
            yield Violation(TRACKER_DETERMINISTIC, f"state {state} has two")
        union |= mask
    if union != everything:
        yield Violation(TRACKER_DETERMINISTIC, f"state {state} has none for some")


def _edges(row: Sequence[Edge], states: int, everything: Mask) -> Violations:
    for edge in row:
        if edge.target not in range(states):
            yield Violation(STATES, f"one goes to {edge.target} of {states}")
        if edge.target == INITIAL:
            yield Violation(ENDS, "an edge enters the initial state")
        if not edge.mask or edge.mask & ~everything:
            yield Violation(READS, f"one to {edge.target} reads {edge.mask:#b}")


# --- I/O-deterministic automata -------------------------------------------------------------------

IO_DETERMINISTIC = "a letter and a label set decide the next state"
TOTAL = "every state has a row for each class of letters"
CLASSES = "every letter is in a class, and no class is empty"
START_APART = "no match comes back to the start"
MOVES_LEAD = "a move ends a match, or goes on in a state"
COMPLETABLE = "every state can be reached, and a match can be completed in it"
MEMBERS = "every state but the start stands for states of the automaton that it was made of"
SMALLEST = "no two states have the same continuations"


def deterministic(found: DeterministicAutomaton, letters: int) -> Violations:
    """I/O-determinism, and no state that leads nowhere.

    Listing relies on I/O-determinism: every match has one run, so none is reported twice. Tables
    rely on rows for all classes.
    """
    if len(found.class_of) != letters or {*found.class_of} != {*range(found.symbols)}:
        text = f"{len(found.class_of)} of {letters} letters are in {len({*found.class_of})} classes"
        yield Violation(CLASSES, text)
    if len(found.members) != found.states or not all(found.members):
        yield Violation(MEMBERS, f"there are {len(found.members)} for {found.states}")
    end = -1
    ways: set[tuple[int, int]] = set()
    for state, rows in enumerate(found.moves):
        look()
        if len(rows) != found.symbols:
            yield Violation(TOTAL, f"state {state} has {len(rows)} of {found.symbols}")
        # Nearly all classes share their rows among states.
        for row in {id(row): row for row in rows}.values():
            marks = [move.marks for move in row]
            if not found.as_met and marks != sorted(set(marks)):
                yield Violation(IO_DETERMINISTIC, f"state {state} has moves marked {marks}")
            for move in row:
                if move.target == START:
                    yield Violation(START_APART, f"state {state} leads to it")
                elif move.target is not None and move.target not in range(found.states):
                    yield Violation(STATES, f"state {state} leads to {move.target}")
                elif move.target is not None:
                    ways.add((state, move.target))
                elif not move.accepts:
                    yield Violation(MOVES_LEAD, f"one of state {state} does not")
                if move.accepts:
                    ways.add((state, end))
    for state in {*range(1, found.states)} - numbers_between(START, end, ways).keys():
        yield Violation(COMPLETABLE, f"state {state} of {found.states} is in no match")


def minimal(found: DeterministicAutomaton, letters: int) -> Violations:
    """A deterministic automaton with as few states as possible.

    Two selectors are compared by their minimal automata. The limits on piles and moves are meant
    for minimal automata.
    """
    yield from deterministic(found, letters)
    states = minimise(found).states
    if states < found.states:
        yield Violation(SMALLEST, f"{states} of {found.states} would do")
