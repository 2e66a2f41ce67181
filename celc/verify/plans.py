"""The invariants of tables, and of the plans for updates and listings."""

from collections.abc import Sequence
from typing import assert_never

from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.determinize import START
from celc.automata.letters import Place
from celc.diagnostics.deadline import look
from celc.normal.show import show_clause
from celc.plan.adjoining.spots import MOST_STEPS, UNMARKED, AdjoiningRuns
from celc.plan.earliest import EarliestTables
from celc.plan.keys import KeyPlan
from celc.plan.program import Program
from celc.plan.straight_line.piles import MAX_PILES, PilePlan, Write
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
from celc.plan.tables import Contexts, SelectionTables, Step, Tables
from celc.verify.violations import Violation, Violations

# --- tables ---------------------------------------------------------------------------------------

TOTAL = "there is an entry for each state and each symbol"
IN_RANGE = "entries are states, symbols and kinds that there are"
INERT = "symbol 0, of events that no atom asks for, is in no match"
SYMBOLS = "every class of the alphabet has a symbol, and each symbol stands for a class"
STARTS_MARKED = "an event can be the first of a match where its kind says so, and only there"
ONE_STEP = "a state, a symbol and a label set decide the next state"
ENDS_LAST = "of a symbol's steps those that end a match are the last"
STARTS_APART = "for the general engine no cell begins a match and goes on with another one"


def tables(found: Tables, classes: int) -> Violations:
    """Tables are total, and symbol 0 changes nothing.

    Kernels index the tables without a check. They pass over events of symbol 0 where unmarked
    events change nothing. `classes` is the number of classes of the alphabet.
    """
    yield from _symbols(found, classes)
    states, symbols = range(found.states), range(found.symbols)
    if len(found.members) != found.states or len(found.skip) != found.states:
        yield Violation(TOTAL, f"{len(found.skip)} of {found.states} states have rows")
    for state, row in enumerate(found.skip):
        look()
        if len(row) != found.symbols:
            yield Violation(TOTAL, f"state {state} has {len(row)} of {found.symbols} symbols")
        if any(
            target is not None and (state == START or target not in states[1:]) for target in row
        ):
            yield Violation(IN_RANGE, f"an unmarked event in state {state} leads out of all")
    if len(found.steps) != found.symbols:
        yield Violation(TOTAL, f"{len(found.steps)} of {found.symbols} symbols have steps")
    for symbol, steps in enumerate(found.steps):
        look()
        for step in steps:
            yield from _step(found, symbol, step)
        yield from _row_of_steps(found, symbol, steps)
    for symbol in _inert_symbols(found):
        if symbol in symbols and found.steps[symbol]:
            yield Violation(INERT, f"it has {len(found.steps[symbol])} steps")


def _symbols(found: Tables, classes: int) -> Violations:
    if len(found.symbol_of) != classes:
        yield Violation(SYMBOLS, f"{len(found.symbol_of)} of {classes} classes have one")
    count = found.symbols if found.contexts is None else len(found.contexts.following[0])
    if found.instants is not None:
        yield from _instants(found.instants, found.symbols)
        count = len(found.instants[0])
    if {*found.symbol_of} != {*range(count)}:
        yield Violation(SYMBOLS, f"{len({*found.symbol_of})} of {count} symbols do")
    if found.symbol_of[:1] != (0,):
        yield Violation(SYMBOLS, "class 0 has another one than symbol 0")
    if found.contexts is not None:
        yield from _contexts(found.contexts, found.symbols, count)


def _instants(found: Sequence[Sequence[int]], symbols: int) -> Violations:
    if len(found) != len(Place) or len({len(row) for row in found}) != 1:
        yield Violation(TOTAL, f"places have {[len(row) for row in found]} classes")
    elif {symbol for row in found for symbol in row} != {*range(symbols)} or found[0][0] != 0:
        yield Violation(SYMBOLS, "not each symbol is that of a class in some place")


def _contexts(found: Contexts, letters: int, symbols: int) -> Violations:
    contexts = len(found.following)
    for name, rows, most in (
        ("context", found.following, contexts),
        ("letter", found.letters, letters),
    ):
        if len(rows) != contexts or any(len(row) != symbols for row in rows):
            yield Violation(TOTAL, f"a {name} is missing")
        if any(entry not in range(most) for row in rows for entry in row):
            yield Violation(IN_RANGE, f"a {name} is out of {most}")


def _inert_symbols(found: Tables) -> set[int]:
    return {0} if found.contexts is None else {row[0] for row in found.contexts.letters}


def _step(found: Tables, symbol: int, step: Step) -> Violations:
    text = f"a step of symbol {symbol}"
    if not step.sources or any(source not in range(found.states) for source in step.sources):
        yield Violation(IN_RANGE, f"{text} has sources {step.sources}")
    if step.target is not None and step.target not in range(1, found.states):
        yield Violation(IN_RANGE, f"{text} leads to {step.target}")
    if step.kind not in range(len(found.kinds)):
        yield Violation(IN_RANGE, f"{text} has kind {step.kind}")
    elif found.kinds[step.kind].starts != (START in step.sources):
        yield Violation(STARTS_MARKED, f"{text} has sources {step.sources}")


def _row_of_steps(found: Tables, symbol: int, steps: Sequence[Step]) -> Violations:
    ends = [step.target is None for step in steps]
    if ends != sorted(ends):
        yield Violation(ENDS_LAST, f"not of symbol {symbol}")
    known: set[tuple[int, tuple[str, ...], bool]] = set()
    for step in steps:
        if step.kind not in range(len(found.kinds)):
            continue
        for source in step.sources:
            key = source, found.kinds[step.kind].marks, step.target is None
            if key in known and not found.as_met:
                yield Violation(ONE_STEP, f"state {source} has two with symbol {symbol}")
            known.add(key)


def _apart(found: Tables) -> Violations:
    for symbol, steps in enumerate(found.steps):
        if any(START in step.sources and len(step.sources) > 1 for step in steps):
            yield Violation(STARTS_APART, f"one of symbol {symbol} does")


# --- choices in windows ---------------------------------------------------------------------------

SETS = "an event before a set of states leads into it from all states that can reach it"


def selection_tables(found: SelectionTables, letters: int) -> Violations:
    """A selection has a symbol for each letter in each state of the tracker.

    The listing of windows relies on it, as kernels rely on `tables`.
    """
    states = len(found.following)
    yield from tables(found.tables, found.tables.symbols)
    yield from _apart(found.tables)
    for rows, most in ((found.following, states), (found.symbols, found.tables.symbols)):
        if len(rows) != states or any(len(row) != letters for row in rows):
            yield Violation(TOTAL, f"the tracker has {len(rows)} of {states} rows of {letters}")
        if any(entry not in range(most) for row in rows for entry in row):
            yield Violation(IN_RANGE, f"an entry of the tracker is out of {most}")


def earliest(found: EarliestTables) -> Violations:
    """Read backwards, each set of states follows from the marks and the set after it.

    The search for the earliest match relies on it. It marks an event if the move leads to a state
    of the set behind that event.
    """
    letters = range(len(found.ends))
    numbers = {states: number for number, states in enumerate(found.sets)}
    rows = (*found.marks, *found.skip, *found.end_kinds, *found.back)
    if any(len(row) != len(letters) for row in rows) or len(found.back) != len(found.sets):
        yield Violation(TOTAL, f"{len(found.back)} of {len(found.sets)} sets have rows")
        return
    if any(
        number not in range(len(found.sets)) for row in (found.ends, *found.back) for number in row
    ):
        yield Violation(IN_RANGE, "an entry is no set")
        return
    for letter in letters:
        look()
        ending = {s for s, row in enumerate(found.end_kinds) if row[letter] is not None}
        if found.sets[found.ends[letter]] != ending:
            yield Violation(SETS, f"letter {letter} ends matches in {sorted(ending)}")
        into: dict[int, set[int]] = {}
        for state, (marks, skip) in enumerate(zip(found.marks, found.skip, strict=True)):
            marked = marks[letter]
            for target in {skip[letter], None if marked is None else marked[1]}:
                if target is not None:
                    into.setdefault(target, set()).add(state)
        for states, number in numbers.items():
            before = set[int]().union(*(into.get(state, ()) for state in states))
            if found.sets[found.back[number][letter]] != before:
                yield Violation(SETS, f"letter {letter} before {sorted(states)} does not")


# --- straight-line updates ------------------------------------------------------------------------

ALL_WRITTEN = "every pile that is read is written"
ALL_STEPS = "the cells of a symbol are made of all that its steps take, and of nothing else"
READ_BEFORE = "no cell is made of a pile after the event has written it"
PILES_FIT = "a cell is put on a pile of its target, and made of piles of its sources"
EMPTIED = "an event empties the piles of the states whose unmarked matches it takes away"
ENOUGH_NODES = "an event makes no more nodes than there is room for"


def straight_line(found: PilePlan) -> Violations:
    """Every variable that the update reads is written, and is read before the event overwrites it.

    Generated updates rely on the order, the arena on the number of nodes.
    """
    of = found.tables
    if len(found.piles) > MAX_PILES:
        yield Violation(IN_RANGE, f"there are {len(found.piles)} piles")
    rows = {len(found.writes), len(found.saved), len(found.removals)}
    if rows != {of.symbols}:
        yield Violation(TOTAL, f"{len(found.writes)} of {of.symbols} symbols have cells")
        return
    written = {write.pile for writes in found.writes for write in writes}
    written |= {removal.into for removals in found.removals for removal in removals}
    read = {pile for writes in found.writes for write in writes for pile in write.reads}
    for pile in sorted(read - written):
        yield Violation(ALL_WRITTEN, f"not pile {pile}")
    for symbol, writes in enumerate(found.writes):
        look()
        yield from _removals(found, symbol)
        yield from _writes(found, symbol, writes)
        made = {(w.step.kind, w.step.target, source) for w in writes for source in w.step.sources}
        asked = {(s.kind, s.target, source) for s in of.steps[symbol] for source in s.sources}
        if made != asked:
            yield Violation(
                ALL_STEPS, f"symbol {symbol} differs in {sorted(map(str, made ^ asked))}"
            )


def _removals(found: PilePlan, symbol: int) -> Violations:
    """An event empties exactly the piles of the states whose unmarked matches it takes away.

    What it moves goes to a pile of the next state, and is read before.
    """
    removals = {removal.pile: removal.into for removal in found.removals[symbol]}
    for number, pile in enumerate(found.piles):
        target = found.tables.skip[pile.target][symbol]
        if (number in removals) != (target != pile.target and number not in found.fleeting):
            yield Violation(EMPTIED, f"symbol {symbol} and pile {number}")
        into = removals.get(number)
        if into is None and target is not None and number in removals:
            yield Violation(EMPTIED, f"symbol {symbol} loses pile {number}")
        if into is not None:
            moved = found.piles[into]
            if (moved.target, moved.sources, moved.moved) != (target, (pile.target,), True):
                yield Violation(PILES_FIT, f"symbol {symbol} moves pile {number} to pile {into}")
            if number not in found.saved[symbol]:
                yield Violation(READ_BEFORE, f"symbol {symbol} moves pile {number} too late")


def _writes(found: PilePlan, symbol: int, writes: Sequence[Write]) -> Violations:
    removals = found.removals[symbol]
    done: set[int] = {r.pile for r in removals} | {r.into for r in removals if r.into is not None}
    safe = found.fleeting | {*found.saved[symbol]}
    for write in writes:
        sources = {*write.step.sources} - {START}
        if any(found.piles[pile].target not in sources for pile in write.reads):
            yield Violation(PILES_FIT, f"symbol {symbol} reads others than those of {sources}")
        if write.starts != (START in write.step.sources):
            yield Violation(PILES_FIT, f"symbol {symbol} begins a match or does not")
        if write.pile is not None and found.piles[write.pile].target != write.step.target:
            yield Violation(PILES_FIT, f"symbol {symbol} writes pile {write.pile}")
        for pile in (done & {*write.reads}) - safe:
            yield Violation(READ_BEFORE, f"symbol {symbol} reads pile {pile} too late")
        if write.pile is not None:
            done.add(write.pile)
    nodes = sum(max(1, len(write.reads)) for write in writes)
    nodes += sum(removal.into is not None for removal in removals)
    if nodes > found.nodes_per_event:
        text = f"symbol {symbol} makes {nodes} of {found.nodes_per_event}"
        yield Violation(ENOUGH_NODES, text)


# --- conditions across events ---------------------------------------------------------------------

KEYS = "a state has a key of a few ties, and the start has none"
KEYS_BROUGHT = "an event that enters or leaves a state with a key brings the key"
KEYS_REMOVED = "an event that takes matches of a state away has its whole key"


def joins(found: KeyPlan, of: Tables) -> Violations:
    """Every move into or out of a state with a key carries all ties of the key.

    The update relies on it: the event's values find the cells of the state.
    """
    if len(found.keys) != of.states:
        yield Violation(KEYS, f"{len(found.keys)} of {of.states} states have an entry")
        return
    for state, key in enumerate(found.keys):
        if list(key) != sorted({*key}) or any(n not in range(len(found.ties)) for n in key):
            yield Violation(KEYS, f"that of state {state} is {key}")
            return
    if found.keys[START]:
        yield Violation(KEYS, "it has one")
    for symbol, steps in enumerate(of.steps):
        for step in steps:
            marks = of.kinds[step.kind].marks
            brought = {number for number, tie in enumerate(found.ties) if tie.of(marks)}
            ends = (*step.sources, *(() if step.target is None else (step.target,)))
            for state in ends:
                if not brought.issuperset(found.keys[state]):
                    yield Violation(KEYS_BROUGHT, f"symbol {symbol} does not for state {state}")
    for removal in found.removals:
        if not removal.terms or len(removal.terms) != len(found.keys[removal.state]):
            yield Violation(KEYS_REMOVED, f"it has {len(removal.terms)} of state {removal.state}")


DECIDED_ONCE = "a condition is decided by keys or while matches are listed, not by both"
SOMETHING_LEFT = "there are checks only where something is left to check"


def checks(found: Checked, keys: KeyPlan | None) -> Violations:
    """The listing has conditions to decide, and keys have not decided them already.

    A query without checks is listed without a look at conditions. That some event carries each role
    cannot be checked on tables: where no match has such an event, no event does.
    """
    decided = () if keys is None else keys.decided
    for clause in found.clauses:
        if clause in decided:
            yield Violation(DECIDED_ONCE, f"'{show_clause(clause.written)}' is by both")
    if not (found.asks or found.distinct or found.selector):
        yield Violation(SOMETHING_LEFT, "nothing is")


# --- the whole ------------------------------------------------------------------------------------

LATEST_OF_PILES = "the latest event first is found on piles"
KEYS_BEFORE_DEFINITIONS = "what the definitions decide, keys do not"
KINDS_OF_RUNS = "each symbol has a kind in a run, or none"
SPOTS = "the events of adjoining runs go from spot to spot, from a start to an end"
COUNTED_TOTALS = "totals alone are found without a list of matches, by the tables"
WORLDS_OF_TABLES = (
    "matches in possible worlds are runs of the tables, by events that take part alone"
)
BOUNDED = "what takes long at one event has a bound on its work"


def program(found: Program) -> Violations:
    """The parts of a program fit together, and each is right by itself."""
    of, update, listing = found.tables, found.update, found.listing
    keys = update.keys if isinstance(update, Keyed) else None
    wrong = [*tables(of, len(found.alphabet.symbols))]
    yield from wrong
    if wrong:
        return  # plans index tables
    match update:
        case BranchFree(piles=piles) | StraightLine(piles=piles):
            yield from straight_line(piles)
        case Keyed(piles=piles):
            yield from straight_line(piles)
            yield from joins(update.keys, of)
        case UnionLists():
            yield from _apart(of)
        case _:
            assert_never(update)
    match listing:
        case All() | InRuns() | United():
            pass
        case InWorlds(max_work=max_work):
            yield from _bounded(max_work)
            if found.query.uncertain is None or not isinstance(update, UnionLists):
                yield Violation(WORLDS_OF_TABLES, "time is certain, or there are no tables")
            if not of.skips_are_identities:
                yield Violation(WORLDS_OF_TABLES, "an event that takes no part changes a state")
        case Checked(max_work=max_work):
            yield from checks(listing, keys)
            yield from _bounded(max_work)
        case InWindow(tables=chosen):
            yield from selection_tables(chosen, of.symbols)
        case EarliestInWindow(tables=chosen):
            yield from earliest(chosen)
        case Latest():
            if isinstance(update, UnionLists):
                yield Violation(LATEST_OF_PILES, "the general engine runs the query")
        case Counted():
            if not isinstance(update, UnionLists) or found.query.total is None:
                yield Violation(COUNTED_TOTALS, "something else is asked for")
        case LongestRuns(run=AdjoiningRuns() as run):
            yield from _adjoining(run, of)
        case LongestRuns(kinds=kinds):
            if any(kind >= len(of.kinds) for kind in kinds) or len(kinds) != of.symbols:
                yield Violation(KINDS_OF_RUNS, f"they are {kinds}")
        case ByDefinition(max_work=max_work):
            yield from _bounded(max_work)
            if keys is not None:
                yield Violation(KEYS_BEFORE_DEFINITIONS, "the update has keys")
        case _:
            assert_never(listing)


def _adjoining(run: AdjoiningRuns, tables: Tables) -> Violations:
    """Each spot is on a way from a start to an end, and its number, or that of a step, has a bit of
    64."""
    spots = range(len(run.kinds))
    if any(kind not in range(UNMARKED, len(tables.kinds)) for kind in run.kinds):
        yield Violation(SPOTS, f"their kinds are {run.kinds}")
    if max(len(run.kinds), len(run.steps)) > MOST_STEPS:
        yield Violation(SPOTS, f"there are {len(run.kinds)}, with {len(run.steps)} steps")
    left, reached = {one.source for one in run.steps}, {one.target for one in run.steps}
    if reached != {*spots} or not {*spots} <= left | run.ends:
        yield Violation(SPOTS, f"steps lead to {sorted(reached)}, and on from {left}")
    if any(symbol not in range(1, tables.symbols) for one in run.steps for symbol in one.symbols):
        yield Violation(SPOTS, "an event of symbol 0 takes a step")


def _bounded(max_work: int) -> Violations:
    if max_work < 1:
        yield Violation(BOUNDED, f"it is {max_work}")
