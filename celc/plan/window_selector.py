"""A selector under WITHIN as its own automata, which choose among the matches of a window. An
automaton is made on demand, because a cheaper way to choose may not need it."""

from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.automata.construct import construct_selection
from celc.automata.determinize import determinize_selection
from celc.automata.graphs import Graph, relabelled
from celc.automata.letters import Letters, machine_over
from celc.automata.minimise import minimise
from celc.automata.predicates import Alphabet
from celc.automata.select import Selection
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Source, Span
from celc.normal.normal_form import KeepLabels, Selected, Strategy
from celc.plan.earliest import Chosen

DETERMINISTIC = "making the automaton deterministic"


@frozen
class WindowSelector:
    """A selector that compares the matches of a window, and the input of its automata."""

    selected: Selected
    labels: tuple[str, ...]  # the labels that SELECT shows
    alphabet: Alphabet
    source: Source
    span: Span  # the place that errors name
    max_states: int
    selection: Selection  # the choice as a nondeterministic automaton over `letters`
    letters: Letters

    @property
    def rejects(self) -> bool:
        """Whether the selector rejects any match at all."""
        return self.selection.rejects

    def automaton(self) -> Chosen:
        """The deterministic automaton of the selector's choice. Raises CelError where the automaton
        has too many states."""
        return self._deterministic(self.selection)

    def automaton_of(self, strategy: Strategy) -> Chosen:
        """The deterministic automaton of another selector's choice."""
        selection, _ = construct_selection(self.selected, self.alphabet, self.source, strategy)
        return self._deterministic(selection)

    def _deterministic(self, selection: Selection) -> Chosen:
        look(self.span, DETERMINISTIC)
        keep = KeepLabels(self.labels)
        starts = relabelled(Graph(selection.graph.version, selection.starts), (keep,))
        shown = replace(selection, graph=relabelled(selection.graph, (keep,)), starts=starts.edges)
        automaton = determinize_selection(
            shown, self.letters.count, self.source, self.span, max_states=self.max_states
        )
        return minimise(automaton), machine_over(selection.tracker, self.letters.count)


def window_selector(
    selected: Selected,
    labels: tuple[str, ...],
    alphabet: Alphabet,
    source: Source,
    span: Span,
    max_states: int,
) -> WindowSelector:
    """The selector of a query under WITHIN. Raises CelError where it is too large to construct."""
    selection, letters = construct_selection(selected, alphabet, source)
    return WindowSelector(selected, labels, alphabet, source, span, max_states, selection, letters)
