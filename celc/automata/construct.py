"""LP-normal form → complex event automaton (Theorem 3 of the CEL paper, appendix C.2).

The construction is compositional, without ε-transitions. Each part of the formula is built between
given entry and exit states. So each operator adds at most one state, in which any event may be
skipped. Parts share structure and are not copied, so the number of states is linear in the formula.

Operators that are not regular are built on letters (`graphs`, `select`) and spliced in: their
states are copied, edges out of the initial state leave every entry, and edges into the final state
enter every exit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from celc.automata.automaton import Automaton, EventPredicate, LetterSet, State, Transition, mask_of
from celc.automata.graphs import (
    FINAL,
    INITIAL,
    Budget,
    Edge,
    Graph,
    TooLargeError,
    Watch,
    intersected,
    numbers_between,
    placed_anyhow,
    reduced,
    relabelled,
    satisfying,
    soonest,
    trimmed,
    with_marked_ends,
    without,
)
from celc.automata.letters import Letters, Mask, Place
from celc.automata.per_start import preferred_of_ends
from celc.automata.predicates import Alphabet
from celc.automata.select import Selection, in_context, select, strict
from celc.core.formula import EventType
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import CelError, Diagnostic, error
from celc.diagnostics.source import Source, Span
from celc.normal import normal_form as lp
from celc.normal.rewrite import clause_on_type
from celc.normal.traversal import operands_of, types_of

MAX_STEPS = 400_000  # steps of products of automata for one query: a few seconds


def construct(
    form: lp.NormalForm, alphabet: Alphabet, source: Source, *, simultaneous: bool = False
) -> Automaton:
    """The automaton whose accepting runs are the complex events of the form.

    With `simultaneous` its letters tell the places of events in their instants. Raises CelError at
    the part of the formula whose automaton would be too large.
    """
    return _trimmed(_Constructor(alphabet, source, simultaneous=simultaneous).automaton(form))


def _trimmed(automaton: Automaton) -> Automaton:
    """The automaton without states that lie on no path from the initial to the final one.

    A product can have no match at all. Then the states after it in a sequence are never reached,
    and the states before it lead nowhere. Such states would only multiply subsets.
    """
    moves = [(transition.source, transition.target) for transition in automaton.transitions]
    number = numbers_between(automaton.initial, automaton.final, moves)
    if len(number) == automaton.states:
        return automaton
    transitions = tuple(
        replace(
            transition,
            source=State(number[transition.source]),
            target=State(number[transition.target]),
        )
        for transition in automaton.transitions
        if transition.source in number and transition.target in number
    )
    return replace(automaton, states=len(number), transitions=transitions)


def construct_selection(
    form: lp.Selected, alphabet: Alphabet, source: Source, strategy: lp.Strategy | None = None
) -> tuple[Selection, Letters]:
    """The choice of a selector on a whole formula, without contexts of the selector itself.

    It is for a selector under WITHIN, whose competitors begin again with each window. `strategy` is
    another selector to use instead.
    """
    strategy = strategy or form.strategy
    constructor = _Constructor(alphabet, source)
    try:
        graph = constructor.graph(form.operand)
        letters = constructor.letters
        assert strategy not in lp.INSIDE_MATCHES
        return select(strategy, graph, letters.all, constructor.budget), letters
    except TooLargeError:
        raise CelError(source, (_too_large(form.span),)) from None


def conditions_of_facts(form: lp.NormalForm) -> tuple[tuple[EventType, lp.EventClause], ...]:
    """The conditions on single events in the facts of a form, by event type."""
    found: dict[tuple[EventType, lp.EventClause], None] = {}
    if isinstance(form, lp.Where):
        for fact in lp.simple_facts(form.fact):
            if not isinstance(fact, lp.CountOf):
                for event_type in types_of(form.operand, fact.label):
                    clause = clause_on_type(fact.clause, event_type)
                    if not isinstance(clause, bool):
                        found[event_type, clause] = None
    for operand in operands_of(form):
        found.update(dict.fromkeys(conditions_of_facts(operand)))
    return tuple(found)


def _too_large(span: Span) -> Diagnostic:
    return error(
        "automaton-too-large",
        span,
        f"building the automaton of this part of the formula takes more than {MAX_STEPS:,} steps",
        "selectors, AND, ALL, UNLESS and `!` multiply the states of what they combine: make "
        "the parts smaller, give their events conditions that exclude each other, or split "
        "the query",
    )


@dataclass(slots=True)
class _Builder:
    """The states and transitions so far. State 0 is initial, state 1 final. `waiting` and `taken`
    are the states inside an instant, by entries and by exits."""

    parts: _Constructor
    states: int = 2
    transitions: dict[Transition, None] = field(default_factory=dict)
    waiting: dict[tuple[State, ...], State] = field(default_factory=dict)
    taken: dict[tuple[State, ...], State] = field(default_factory=dict)

    def new_state(self) -> State:
        state = State(self.states)
        self.states += 1
        return state

    def add(
        self,
        source: State,
        predicate: EventPredicate | LetterSet | None,
        marks: tuple[str, ...],
        target: State,
        names: tuple[str, ...],
    ) -> None:
        self.transitions[Transition(source, predicate, marks, target, names)] = None

    def build(
        self, form: lp.NormalForm, entries: tuple[State, ...], exits: tuple[State, ...]
    ) -> None:
        """Add paths for the matches of `form`, from each of `entries` to each of `exits`.

        All entries share the states in between, so the number of states does not depend on the
        number of entries.
        """
        look(form.span)
        match form:
            case lp.Event() if form.simultaneous:
                self.build_instant(form, entries, exits)
            case lp.Event():
                predicate = EventPredicate(form.type, form.clauses)
                for source in entries:
                    for target in exits:
                        self.add(source, predicate, form.labels, target, (form.name,))
            case lp.Disjunction():
                for operand in form.operands:
                    self.build(operand, entries, exits)
            case lp.Sequence():
                for index, operand in enumerate(form.operands[:-1]):
                    between = self.new_state()
                    if not form.contiguous[index]:
                        self.add(between, None, (), between, ())
                    self.build(operand, entries, (between,))
                    entries = (between,)
                self.build(form.operands[-1], entries, exits)
            case lp.Iteration():
                self.build_rounds(form, entries, exits)
            case lp.Absence():
                self.build_absence(form, entries, exits)
            case lp.ThenFirst():
                self.build_first(form, entries, exits)
            case _:
                self.splice(self.parts.graph(form), entries, exits)

    def build_instant(
        self, form: lp.Event, entries: tuple[State, ...], exits: tuple[State, ...]
    ) -> None:
        """A whole instant, of which one event is that of the form; the others are skipped.

        All events with these entries share the state in which none has been taken yet. All with
        these exits share the state in which one has been taken.
        """
        letters = self.parts.letters
        asked = letters.matching(form.type, form.clauses)

        def add(source: State, place: Place, target: State, *, taken: bool) -> None:
            mask = letters.at(place) & (asked if taken else letters.all)
            marks, names = (form.labels, (form.name,)) if taken else ((), ())
            self.add(source, LetterSet(letters.version, mask), marks, target, names)

        if entries not in self.waiting:
            self.waiting[entries] = self.new_state()
        if exits not in self.taken:
            self.taken[exits] = self.new_state()
        waits, has_one = self.waiting[entries], self.taken[exits]
        for source in entries:
            for target in exits:
                add(source, Place.ALONE, target, taken=True)
            add(source, Place.FIRST, waits, taken=False)
            add(source, Place.FIRST, has_one, taken=True)
        for state in (waits, has_one):
            # No event is alone in the middle of an instant. So events that no condition asks for,
            # which are mostly alone, change nothing, and the update skips them.
            add(state, Place.ALONE, state, taken=False)
        add(waits, Place.BETWEEN, waits, taken=False)
        add(waits, Place.BETWEEN, has_one, taken=True)
        add(has_one, Place.BETWEEN, has_one, taken=False)
        for target in exits:
            add(waits, Place.LAST, target, taken=True)
            add(has_one, Place.LAST, target, taken=False)

    def build_rounds(
        self, form: lp.Iteration, entries: tuple[State, ...], exits: tuple[State, ...]
    ) -> None:
        """Rounds one after the other. Without an upper limit the last one repeats."""
        for number in range(1, form.written_out + 1):
            between = self.new_state()
            if not form.contiguous:
                self.add(between, None, (), between, ())
            is_last = number == form.written_out
            repeats = is_last and form.most is None
            leave = exits if number >= form.least else ()
            go_on = (between,) if repeats or not is_last else ()
            starts = (*entries, between) if repeats else entries
            self.build(form.operand, starts, (*leave, *go_on))
            entries = (between,)

    def build_absence(
        self, form: lp.Absence, entries: tuple[State, ...], exits: tuple[State, ...]
    ) -> None:
        """Like `;`, but a watch reads the skipped events between the two."""
        graph = self.parts.graph(form.middle)
        watch = Watch(graph, self.parts.letters.all)
        state_of = {0: self.new_state()}
        order = [0]
        try:
            for watched in order:
                for mask, after in watch.steps(watched, self.parts.budget):
                    self.parts.budget.spend()
                    if after not in state_of:
                        state_of[after] = self.new_state()
                        order.append(after)
                    letters = LetterSet(graph.version, mask)
                    self.add(state_of[watched], letters, (), state_of[after], ())
        except TooLargeError:
            raise CelError(self.parts.source, (_too_large(form.middle.span),)) from None
        self.build(form.left, entries, (state_of[0],))
        self.build(form.right, tuple(state_of.values()), exits)

    def build_first(
        self, form: lp.ThenFirst, entries: tuple[State, ...], exits: tuple[State, ...]
    ) -> None:
        """The left side, then rounds, each with the events that are skipped before it."""
        between = self.new_state()
        self.build(form.left, entries, (between,))
        try:
            first, others = self.parts.soonest(form)
        except TooLargeError:
            raise CelError(self.parts.source, (_too_large(form.chosen.span),)) from None
        entries = (between,)
        for number in range(1, form.written_out + 1):
            graph = first if number == 1 else others
            is_last = number == form.written_out
            leave = exits if number >= form.least else ()
            between = self.new_state()
            self.splice(graph, entries, (*leave, between))
            if is_last and form.most is None:
                self.splice(others, (between,), (*leave, between))
            entries = (between,)

    def splice(self, graph: Graph, entries: tuple[State, ...], exits: tuple[State, ...]) -> None:
        """Put a graph between entries and exits."""
        inner = {state: self.new_state() for state in range(graph.states) if state > FINAL}
        for state, edges in enumerate(graph.edges):
            for source in entries if state == INITIAL else (inner[state],) if state > FINAL else ():
                for edge in edges:
                    for target in exits if edge.target == FINAL else (inner[edge.target],):
                        letters = LetterSet(graph.version, edge.mask)
                        self.add(source, letters, edge.marks, target, edge.names)


class _Constructor:
    """Builds the parts of one query. Every nested selector makes the letters finer."""

    def __init__(self, alphabet: Alphabet, source: Source, *, simultaneous: bool = False) -> None:
        self.source = source
        self.letters = Letters(alphabet, simultaneous=simultaneous)
        self.budget = Budget(MAX_STEPS)

    def automaton(self, form: lp.NormalForm) -> Automaton:
        initial, final = State(0), State(1)
        builder = _Builder(self)
        builder.build(form, (initial,), (final,))
        transitions = tuple(builder.transitions)
        return Automaton(builder.states, initial, final, transitions, self.letters)

    def graph(self, form: lp.NormalForm) -> Graph:
        """The automaton of a form over the newest version of the letters."""
        try:
            return self._graph(form)
        except TooLargeError:
            raise CelError(self.source, (_too_large(form.span),)) from None

    def _graph(self, form: lp.NormalForm) -> Graph:
        match form:
            case lp.Event() | lp.Sequence() | lp.Iteration() | lp.Disjunction() | lp.Absence():
                return self._as_graph(self.automaton(form))
            case lp.ThenFirst():
                return self._as_graph(self.automaton(form))
            case lp.Conjunction():
                left, right = self._both(form.left, form.right)
                return intersected(left, right, self.budget)
            case lp.All():
                left, right = self._both(form.left, form.right)
                return placed_anyhow(left, right, self.letters.all, self.budget)
            case lp.Unless():
                left, right = self._both(form.left, form.right)
                return without(left, Watch(right, self.letters.all), self.budget)
            case lp.Selected():
                graph = self._graph(form.operand)
                if form.strategy == "STRICT":
                    return strict(graph, self.budget)
                if form.strategy in lp.INSIDE_MATCHES:
                    first = form.strategy == "FIRST_OF_START"
                    return preferred_of_ends(graph, self.letters.all, self.budget, first=first)
                selection = select(form.strategy, graph, self.letters.all, self.budget)
                return in_context(selection, self.letters)
            case lp.Relabel():
                return reduced(relabelled(self._graph(form.operand), form.changes))
            case lp.Where():
                graph = self._graph(form.operand)
                masks: dict[lp.SimpleFact, Mask] = {
                    fact: self._satisfying(form.operand, fact)
                    for fact in lp.simple_facts(form.fact)
                    if not isinstance(fact, lp.CountOf)
                }
                return satisfying(graph, form.fact, masks, self.budget)
            case lp.MarkedEnds():
                return reduced(with_marked_ends(self._graph(form.operand), form.first, form.last))
            case lp.Correlated() | lp.Scope() | lp.Within():
                raise AssertionError("relaxed before")
            case lp.AbsenceBefore() | lp.AbsenceAfter():
                raise AssertionError("relaxed before")
            case _:
                assert_never(form)

    def _both(self, left: lp.NormalForm, right: lp.NormalForm) -> tuple[Graph, Graph]:
        one, other = self._graph(left), self._graph(right)
        return self._newest(one), self._newest(other)

    def soonest(self, form: lp.ThenFirst) -> tuple[Graph, Graph]:
        """The first round of a FIRST, and all others."""
        parts = (form.chosen, form.absent, form.gap)
        graphs = [None if part is None else self._graph(part) for part in parts]
        newest = [None if graph is None else self._newest(graph) for graph in graphs]
        chosen, *absent = (
            None if graph is None else Watch(graph, self.letters.all) for graph in newest
        )
        graph, (one, gap) = newest[0], absent
        assert graph is not None
        assert chosen is not None
        first, others = (
            soonest(
                graph,
                chosen,
                [watch for watch in watches if watch is not None],
                self.letters.all,
                self.budget,
            )
            for watches in ((one, gap), (one,))
        )
        return first, others

    def _newest(self, graph: Graph) -> Graph:
        if graph.version == self.letters.version:
            return graph
        return Graph(
            self.letters.version,
            tuple(
                tuple(e._replace(mask=self.letters.lift(e.mask, graph.version)) for e in edges)
                for edges in graph.edges
            ),
        )

    def _as_graph(self, automaton: Automaton) -> Graph:
        edges: list[list[Edge]] = [[] for _ in range(automaton.states)]
        for transition in automaton.transitions:
            self.budget.spend()
            mask = mask_of(transition.predicate, self.letters)
            if mask:
                edge = Edge(mask, transition.marks, transition.target, transition.names)
                edges[transition.source].append(edge)
        return reduced(trimmed(Graph(self.letters.version, tuple(map(tuple, edges)))))

    def _satisfying(self, form: lp.NormalForm, fact: lp.SomeEvent | lp.EndEvent) -> Mask:
        """The letters of the events of a fact's label that satisfy the fact's clause."""
        mask = 0
        for event_type in types_of(form, fact.label):
            clause = clause_on_type(fact.clause, event_type)
            if clause is True:
                mask |= self.letters.matching(event_type, ())
            elif clause is not False:
                mask |= self.letters.matching(event_type, (clause,))
        return mask
