"""The results of single passes as text: flat forms, alphabets, selections, piles, keys, sets."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from celc.automata.determinize import START
from celc.automata.graphs import FINAL, Edge
from celc.automata.letters import Letters
from celc.automata.predicates import Alphabet
from celc.automata.select import Selection
from celc.codegen.expressions.describe import describe_letters, describe_symbol
from celc.core.formula import ROLE, Expression
from celc.core.terms import labels_named
from celc.core.traversal import Leaf, map_leaves
from celc.interfaces.explain.correlation import clause_line
from celc.interfaces.explain.stages import form_lines, kind_lines, text_of
from celc.normal.flat_form import FlatForm, RoleClause
from celc.normal.normal_form import NormalForm
from celc.normal.show import show_clause, show_event, show_labels, show_window
from celc.plan.earliest import EarliestTables
from celc.plan.keys import KeyPlan, named_term
from celc.plan.straight_line.piles import Pile, PilePlan, Write


def dump_form(form: NormalForm) -> str:
    return text_of(form_lines(form))


def dump_flat_form(flat: FlatForm) -> str:
    """The form with roles on its events, and the conditions on the roles."""
    lines = form_lines(flat.form)
    lines += [_role_clause(clause) for clause in flat.clauses]
    for absent in flat.absent:
        events = " OR ".join(show_event(event.type, event.clauses) for event in absent.events)
        first, last = _role(absent.first), _role(absent.last)
        where = f"from {first} to {last}" if absent.inclusive else f"between {first} and {last}"
        lines.append(f"no {events} {where}")
        lines += [f"  {_role_clause(clause)}" for clause in absent.clauses]
        if absent.part is not None:
            lines.append(f"  as the last one of, with one {_key(absent.part.terms)}")
            lines += [f"    {line}" for line in form_lines(absent.part.form)]
    for part in flat.absent_parts:
        first, last = _role(part.first), _role(part.last)
        where = f"from {first} to {last}" if part.inclusive else f"between {first} and {last}"
        window = "" if part.window is None else f" {show_window(part.window)}"
        key = f" with one {_key(part.key)}" if part.key else ""
        lines.append(f"{where} nothing{window}{key} of")
        lines += [f"  {line}" for line in form_lines(part.form)]
    for one in flat.first:
        events = " OR ".join(show_event(event.type, event.clauses) for event in one.events)
        lines.append(f"{_role(one.role)} is the first {events} with its {_key(one.terms)}")
    return text_of(lines)


def _key(terms: Iterable[Expression]) -> str:
    return ", ".join(named_term(term)[0] for term in terms)


def _role_clause(clause: RoleClause) -> str:
    def plain(node: Leaf) -> Expression:
        return replace(node, label=_role(node.label))

    predicates = tuple(map_leaves(predicate, plain) for predicate in clause.clause.predicates)
    text = clause_line(replace(clause, written=replace(clause.written, predicates=predicates)))
    rounds = clause.round_mark
    if rounds is not None:
        text += f", in one {_role(rounds)}"
    named = set().union(*map(labels_named, clause.clause.predicates))
    others = [_role(role) for role in clause.clause.labels if role not in named]
    return f"{text}, for each {', '.join(others)}" if others else text


def _role(role: str) -> str:
    return role.removeprefix(ROLE)


def dump_alphabet(alphabet: Alphabet) -> str:
    """The symbols in words."""
    return text_of(
        f"{number}  {describe_symbol(alphabet, symbol)}"
        for number, symbol in enumerate(alphabet.symbols)
    )


def dump_selection(selection: Selection, letters: Letters) -> str:
    """The tracker, the matches that begin in each of its states, and how matches go on."""
    lines = [
        "some matches are rejected" if selection.rejects else "no match is rejected",
        "tracker:",
    ]
    for state, moves in enumerate(selection.tracker):
        for mask, target in moves:
            lines.append(f"  {state} --{describe_letters(letters, mask)}--> {target}")
    lines.append("matches that begin, by state of the tracker:")
    for state, edges in enumerate(selection.starts):
        lines += [f"  in {state}: {_edge(edge, letters)}" for edge in edges]
    lines.append("matches that go on:")
    # The graph still has start states that are not reached.
    reached = {
        edge.target for edges in (*selection.starts, *selection.graph.edges) for edge in edges
    }
    for state in sorted(reached):
        edges = selection.graph.edges[state]
        lines += [f"  {state} {_edge(edge, letters)}" for edge in edges]
    return text_of(lines)


def _edge(edge: Edge, letters: Letters) -> str:
    marks = show_labels(edge.marks) if edge.marks or edge.names else "○"
    target = "match" if edge.target == FINAL else str(edge.target)
    return f"--{describe_letters(letters, edge.mask)} / {marks}--> {target}"


def dump_straight_line(plan: PilePlan) -> str:
    """The piles, and the cells that each symbol makes, in order."""
    lines = [f"{len(plan.piles)} piles, up to {plan.nodes_per_event} nodes at an event"]
    for number, pile in enumerate(plan.piles):
        fleeting = ", fleeting" if number in plan.fleeting else ""
        lines.append(f"pile {number}: state {pile.target} from {_clock(pile)}{fleeting}")
    for symbol, writes in enumerate(plan.writes):
        saved = plan.saved[symbol]
        if saved:
            lines.append(f"symbol {symbol} copies pile {', '.join(map(str, saved))} first")
        for removal in plan.removals[symbol]:
            whereto = "" if removal.into is None else f", into pile {removal.into}"
            lines.append(f"symbol {symbol} empties pile {removal.pile}{whereto}")
        lines += [f"symbol {symbol}: {_write(write)}" for write in writes]
    return text_of(lines)


def _clock(pile: Pile) -> str:
    sources = " ".join("start" if source == START else str(source) for source in pile.sources)
    states = " ".join("start" if s == START else str(s) for s in sorted(pile.clock.states))
    through = [
        "events an event late" if state is None else f"state {state}"
        for state in pile.clock.through
    ]
    moved = ", moved" if pile.moved else ""
    return f"{sources}{moved}, by the clock of {' through '.join([states, *through])}"


def _write(write: Write) -> str:
    read = ["a match that begins"] * write.starts + [f"pile {number}" for number in write.reads]
    target = "match" if write.pile is None else f"pile {write.pile}"
    return f"{' and '.join(read) or 'nothing'} --{write.step.kind}--> {target}"


def dump_keys(plan: KeyPlan) -> str:
    lines = [f"tie {number}: {tie.text}" for number, tie in enumerate(plan.ties)]
    for state, key in enumerate(plan.keys):
        lines.append(f"state {state}: {', '.join(map(str, key)) or 'no key'}")
    for clause in plan.decided:
        lines.append("decided: " + show_clause(clause.written))
    for removal in plan.removals:
        symbols = ", ".join(map(str, sorted(removal.symbols)))
        lines.append(f"state {removal.state}: symbols {symbols} remove their {_key(removal.terms)}")
    return text_of(lines)


def dump_earliest(tables: EarliestTables) -> str:
    """How each state marks an event, and the sets of states that still reach the end."""
    lines = ["kinds of events:", *kind_lines(tables.kinds)]
    for state, row in enumerate(tables.marks):
        for letter, way in enumerate(row):
            if way is not None:
                lines.append(f"state {_state(state)}: {letter} --{way[0]}--> {way[1]}")
            kind = tables.end_kinds[state][letter]
            if kind is not None:
                lines.append(f"state {_state(state)}: {letter} --{kind}--> match")
    for number, states in enumerate(tables.sets):
        names = ", ".join(map(_state, sorted(states))) or "none"
        lines.append(f"set {number}: {names}; before each letter: {_numbers(tables.back[number])}")
    return text_of([*lines, f"set before the end, by its letter: {_numbers(tables.ends)}"])


def _state(state: int) -> str:
    return "start" if state == START else str(state)


def _numbers(row: Sequence[int]) -> str:
    return " ".join(map(str, row))
