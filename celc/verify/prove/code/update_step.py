"""automaton → update: what the code of an update does to piles is what the automaton says.

The update is run over one event of each symbol, from states of its piles, as the text of the module
has it. First each pile alone holds matches. That tells what an event does with each: the relation
of the update. Then states with several piles must give the union of that, whatever the order of
their starts, also where a start is just inside or just outside the window. Last the relation is
compared with the automaton (`machines.py`), for streams of any length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product

from celc.verify.prove.code.arena_model import ALWAYS, MERGE, NEVER
from celc.verify.prove.code.machines import BEGIN, Machine, Moves, Place
from celc.verify.prove.code.module_text import WrongError
from celc.verify.prove.code.relations import Clock, Relation, parts_text, shown
from celc.verify.prove.code.update_code import (
    ENTRY,
    FIRST_NEW,
    ROW,
    After,
    Before,
    Part,
    Pile,
    UpdateCode,
)

MAX_STATES, MAX_STATES_OF_ALL = 1500, 12_000
"""States for one symbol, and for all of them; where all orders of starts are more, only pairs of
piles are tried."""


class UpdateStep:
    """The relation of an update, and all checks of it. Each raises WrongError."""

    def __init__(
        self,
        code: UpdateCode,
        clock: Clock,
        symbols: int,
        *,
        consumes: bool,
        takes: Mapping[int, frozenset[Pile]] | None = None,
    ) -> None:
        self.code, self.clock, self.consumes = code, clock, consumes
        self.symbols = symbols
        self.takes = takes or {}
        """By symbol the piles from which an event takes the cells that fit it; others stay."""
        self.is_exact = True
        self._most_nodes = 1
        self.relations = [self._relation(symbol) for symbol in range(1, symbols)]
        self.passing = self._passing()

    def machine(self, marks: Sequence[tuple[str, ...]]) -> Machine:
        """The relation over all symbols, with the marks of kinds."""
        moves: list[Moves] = [{p: [((), t) for t in to] for p, to in self.passing.items()}]
        for relation in self.relations:
            found: dict[Place, list[tuple[tuple[str, ...], Place | None]]] = {}
            for pile, to in relation.stays.items():
                found.setdefault(pile, []).extend(((), one) for one in to)
            for source, made in relation.made.items():
                found.setdefault(source, []).extend((marks[kind], to) for kind, to in made)
            moves.append(found)
        return Machine(tuple(moves))

    # --- the relation -----------------------------------------------------------------------------

    def _before(self, since: Mapping[Pile, int], symbol: int, **more: object) -> Before:
        return Before(since, (symbol,), self.clock.key, self.clock.floor, **more)  # type: ignore[arg-type]

    def _relation(self, symbol: int, *, neighbour: bool = True) -> Relation:
        """What becomes of what an event takes; and what stays of what it does not take."""
        taken = self.takes.get(symbol, frozenset())
        found = self._relation_of(symbol, taken, neighbour=neighbour)
        if not taken:
            return found
        left = self._relation_of(symbol, frozenset(), neighbour=neighbour)
        for pile in taken:
            if pile in found.stays or pile in left.made or left.stays.get(pile) != (pile,):
                raise WrongError(f"symbol {symbol}: what it does not take of {pile} goes on")
        return Relation(left.stays, found.made)

    def _relation_of(
        self, symbol: int, taken: frozenset[Pile], *, neighbour: bool = True
    ) -> Relation:
        stays: dict[Pile, tuple[Pile, ...]] = {}
        made: dict[Pile | str, list[tuple[int, Pile | None]]] = {}
        latest, piles = max(self.clock.starts()), self.code.piles
        # A match that consumes hides what else the event does. So each pile is looked at alone.
        states = [{}, *({pile: latest} for pile in piles)] if self.consumes else []
        for since in states or [dict.fromkeys(piles, latest)]:
            asked = {*since} or {BEGIN}
            before = self._before(since, symbol, neighbour=neighbour, taken=taken)
            after = self.answer(before)
            for to, parts in after.items():
                for source, kinds in parts:
                    if source not in asked and (states or source != BEGIN):
                        if source == BEGIN:
                            continue
                        raise WrongError(f"symbol {symbol}: an event goes on from nothing")
                    if len(kinds) > 1 or (not kinds and to is None):
                        raise WrongError(f"symbol {symbol}: {source} becomes {kinds} in {to}")
                    if kinds:
                        made.setdefault(source, []).append((kinds[0], to))
                    else:
                        stays[source] = (*stays.get(source, ()), to)
        return Relation(stays, {source: tuple(one) for source, one in made.items()})

    def _passing(self) -> dict[Pile, tuple[Pile, ...]]:
        """What events of symbol 0 leave: they are not read, and told by the next event."""
        lost: set[Pile] = set()
        if self.code.reads_neighbours or self.code.has_instants:
            for symbol, near in enumerate(self.relations, 1):
                far = self._relation(symbol, neighbour=False)
                for pile in self.code.piles:
                    left = near.made.get(pile), near.stays.get(pile)
                    if (far.made.get(pile), far.stays.get(pile)) != left:
                        if pile in far.made or pile in far.stays:
                            raise WrongError(f"symbol {symbol}: pile {pile} changes half")
                        lost.add(pile)
            for symbol in range(1, self.symbols):
                far = self._relation(symbol, neighbour=False)
                if lost & ({*far.made} | {*far.stays}):
                    raise WrongError(f"symbol {symbol}: a pile lasts over a gap only here")
        return {pile: (pile,) for pile in self.code.piles if pile not in lost}

    # --- the answer of the code -------------------------------------------------------------------

    def answer(self, before: Before) -> dict[Pile | None, list[Part]]:
        """What each pile holds after the events; under None: the matches that end."""
        after = self._last = self.code.run(before)
        self._bookkeeping(before, after)
        floor, lowest = before.last_floor, after.counters["LOWEST"]
        found: dict[Pile | None, list[Part]] = {}
        for pile, (head, since) in after.heads.items():
            parts = after.parts(head, floor, lowest, self.code) if since >= floor else []
            if parts:
                found[pile] = parts
                if after.nodes.rows[head][3] != since:
                    raise WrongError(f"{shown(before)}: pile {pile} has the start of another")
        for node, row, fire_lowest, fire_floor in after.calls.fires:
            own_floor = before.floor + before.rises * (row - ROW)
            if fire_floor != own_floor or not ROW <= row < ROW + len(before.symbols):
                raise WrongError(f"{shown(before)}: a match ends with a wrong window or row")
            parts = after.parts(node, own_floor, fire_lowest, self.code)
            found.setdefault(None, []).extend(parts)
        if after.calls.wrong:
            raise WrongError(f"{shown(before)}: {after.calls.wrong[0]}")
        self._starts_of_cells(before, after)
        return found

    def _starts_of_cells(self, before: Before, after: After) -> None:
        """A cell has the latest start of what it is made of, and stands in front of no later one.

        Where keys or bounds mix what a pile is made of, it may have the latest start of its whole
        pile instead.
        """
        rows = after.nodes.rows
        waiting = [head for head, since in after.heads.values() if since >= before.floor]
        waiting += [fire[0] for fire in after.calls.fires]
        while waiting:
            node = waiting.pop()
            if node < FIRST_NEW or node not in rows or rows[node][3] < before.floor:
                continue
            tag, child, following, since = rows[node]
            waiting += [child, following]
            if tag == MERGE:
                continue
            lowest = FIRST_NEW if before.new_part else 1
            wanted = rows[child][3] if child >= lowest and child in rows else NEVER
            kind = tag & (1 << self.code.kind_bits) - 1
            if self.code.starts[kind]:
                own = before.key if before.key_of_part is None else before.key_of_part
                own += before.key_rises * ((tag >> self.code.kind_bits) - ENTRY)
                wanted = max(own, wanted)
            behind = rows[following][3] if following >= lowest and following in rows else NEVER
            if since != wanted and not (self._mixes and since == max(wanted, behind)):
                raise WrongError(f"{shown(before)}: a cell has not the latest of its starts")
            ends = any(node == fire[0] for fire in after.calls.fires)
            if self.keeps_order and not ends and since < behind:
                raise WrongError(f"{shown(before)}: a cell stands in front of a later start")

    @property
    def _mixes(self) -> bool:
        """Whether piles can be made of matches whose starts come in any order."""
        return self.code.bounds is not None or bool(self.code.key_terms)

    @property
    def keeps_order(self) -> bool:
        """Whether the order of each pile follows from the state before: no pile is ever emptied."""
        return self._keeps_all and not self._mixes

    def _bookkeeping(self, before: Before, after: After) -> None:
        counters, count = after.counters, len(before.symbols)
        self._most_nodes = max(self._most_nodes, len(after.nodes.rows) - len(after.old))
        wanted = {
            "ROW": ROW + count,
            "ENTRY": ENTRY + sum(symbol != 0 for symbol in before.symbols),
            "EARLIEST": before.last_floor,
            "SHIFT": ROW if before.new_part else ROW - before.key,
        }
        for name, value in wanted.items():
            if counters[name] != value:
                raise WrongError(f"{shown(before)}: {name} becomes {counters[name]}, not {value}")
        if not after.calls.listed:
            raise WrongError(f"{shown(before)}: what has fired is not listed")
        for node, (_, child, following, _) in after.nodes.rows.items():
            if node >= counters["NEXT_NODE"] and self._is_reached(after, node):
                raise WrongError(f"{shown(before)}: the next event overwrites a node")
            if max(child, following) >= node and node not in after.old:
                raise WrongError(f"{shown(before)}: a node refers to a later one")

    def _is_reached(self, after: After, node: int) -> bool:
        heads = [head for head, since in after.heads.values() if since != NEVER]
        return node in heads or any(node == fire[0] for fire in after.calls.fires)

    # --- states with several piles ----------------------------------------------------------------

    def check(self) -> None:
        """All states that are tried of all symbols."""
        self.clocks()
        for symbol in range(1, self.symbols):
            relation = self.relations[symbol - 1]
            for since in self._states(relation):
                for taken in {frozenset[Pile](), self.takes.get(symbol, frozenset())}:
                    before = self._before(since, symbol, taken=taken)
                    self.compare(before, relation)
            if self.code.plan.source.partition_by and not self.code.plan.interleaves:
                self._check_partition(symbol, relation)
        self._check_room()

    def _states(self, relation: Relation) -> Iterator[dict[Pile, int]]:
        starts = self.clock.starts()
        piles = self.code.piles
        asked = relation.reads() | {
            to for made in relation.made.values() for _, to in made if to is not None
        }
        moved = {p for p in piles if relation.stays.get(p, ()) != (p,)}
        asked |= moved | {to for p in moved for to in relation.stays.get(p, ())}
        busy = [pile for pile in piles if pile in asked]
        idle = {pile: starts[-1] for pile in piles if pile not in asked}
        most = min(MAX_STATES, max(100, MAX_STATES_OF_ALL // self.symbols))
        if (1 + len(starts)) ** len(busy) <= most:
            for chosen in product((None, *starts), repeat=len(busy)):
                found = {p: s for p, s in zip(busy, chosen, strict=True) if s is not None}
                if self._can_be(found):
                    yield {**idle, **found}
            return
        self.is_exact = False
        pairs = list(combinations(busy, 2))
        few = (None, starts[0], starts[-1])
        each = len(pairs) * 2 * len(few) ** 2 // most + 1
        for pair in pairs[::each]:
            for rest, *edges in product((None, starts[-1]), few, few):
                others = {} if rest is None else dict.fromkeys(busy, rest)
                for pile, start in zip(pair, edges, strict=True):
                    others.pop(pile, None)
                    if start is not None:
                        others[pile] = start
                if self._can_be(others):
                    yield {**idle, **others}

    def _can_be(self, since: Mapping[Pile, int]) -> bool:
        """Whether the starts in a state are such as events leave them (`clocks`)."""
        return all(
            since.get(pile, NEVER) <= max((since.get(one, NEVER) for one in of), default=NEVER)
            for pile, of in self.clocks()
        )

    def clocks(self) -> list[tuple[Pile, frozenset[Pile]]]:
        """Piles whose latest start is never later than the latest of some others.

        Where all piles keep what they hold, a pile takes the latest start of what its cells are
        made of, and that never falls. So it holds before each event if it held before the first.
        """
        if self._clocks is None:
            self._clocks = self._found_clocks()
        return self._clocks

    _clocks: list[tuple[Pile, frozenset[Pile]]] | None = None
    _keeps_all = False
    _last: After | None = None

    def _found_clocks(self) -> list[tuple[Pile, frozenset[Pile]]]:
        self._keeps_all = all(
            r.stays.get(p, ()) == (p,) for r in self.relations for p in self.code.piles
        ) and len(self.passing) == len(self.code.piles)
        if not self.keeps_order:
            return []
        made: dict[Pile, set[frozenset[Pile]]] = {}
        for relation in self.relations:
            sources: dict[tuple[int, Pile], set[Pile | str]] = {}
            for source, moves in relation.made.items():
                for kind, to in moves:
                    if to is not None:
                        sources.setdefault((kind, to), set()).add(source)
            for (_, to), of in sources.items():
                made.setdefault(to, set()).add(frozenset(of))
        return [
            (pile, next(iter(of)))
            for pile, of in made.items()
            if len(of) == 1 and BEGIN not in next(iter(of)) and pile not in next(iter(of))
        ]

    def compare(
        self,
        before: Before,
        relation: Relation,
        admits: Callable[[Pile | str, int, Pile | None], bool] = lambda *_: True,
        empties: Callable[[Pile], bool | None] = lambda _: None,
        *,
        may_admit_more: bool = False,
    ) -> After:
        """Run the code, and hold what it does against the relation of the symbol.

        admits: whether the event makes a cell of some kind of a pile, for a pile. empties: whether
        the event takes away what is left in a pile; None: it does what the relation says.
        may_admit_more: it may admit what it need not, as what the listing refuses later.
        """
        wanted = self._wanted(before, relation, admits, empties)
        found = self.answer(before)
        most = wanted
        if may_admit_more:
            most = self._wanted(before, relation, lambda *_: True, empties)
        takes = self.takes.get(before.symbols[0], frozenset())
        for pile in (*self.code.piles, None):
            ours, theirs = Counter(wanted.get(pile, ())), Counter(found.get(pile, ()))
            missing, more = ours - theirs, theirs - (ours | Counter(most.get(pile, ())))
            if takes and theirs == Counter(most.get(pile, ())):
                continue  # an event may take what it need not, if it takes it wholly
            if missing or more:
                where = "the matches that end" if pile is None else f"pile {pile}"
                raise WrongError(
                    f"{shown(before)}: {where}: wanted {parts_text(missing)}, "
                    f"found instead {parts_text(more)}"
                )
        assert self._last is not None
        return self._last

    def _wanted(
        self,
        before: Before,
        relation: Relation,
        admits: Callable[[Pile | str, int, Pile | None], bool],
        empties: Callable[[Pile], bool | None],
    ) -> dict[Pile | None, list[Part]]:
        """What piles hold after an event that reads a state, by its relation."""
        live = [
            pile
            for pile, since in before.since.items()
            if since >= before.floor and not before.new_part
        ]
        takes = self.takes.get(before.symbols[0], frozenset())
        found: dict[Pile | None, list[Part]] = {}
        for source in (BEGIN, *live):
            goes = source not in takes or source in before.taken
            moves = [
                (kind, to)
                for kind, to in relation.made.get(source, ())
                if goes and admits(source, kind, to)
            ]
            for kind, to in moves:
                found.setdefault(to, []).append((source, (kind,)))
            stays = relation.stays.get(source, ())
            if source in takes and goes and moves:
                stays = ()
            hidden = self.consumes and goes and not moves and source in relation.made
            taken = None if source == BEGIN else empties(source)
            if source != BEGIN and not stays and (taken is False or (hidden and not taken)):
                stays = (source,)
            for to in stays:
                found.setdefault(to, []).append((source, ()))
        if self.consumes and None in found:
            return {None: found[None]}
        return found

    def _check_partition(self, symbol: int, relation: Relation) -> None:
        since = {pile: self.clock.starts()[-1] for pile in self.code.piles}
        before = self._before(since, symbol, new_part=True)
        if self.by_position():
            before.floor = self.clock.floor - self.clock.key
            before.key_of_part = 0
        elif self.clock.floor == ALWAYS:
            before.key_of_part = 0
        self.compare(before, relation)

    def by_position(self) -> bool:
        """Whether windows are measured on positions."""
        window = self.code.plan.matching.window
        one_event = window is None and self.clock.floor == self.clock.key
        return one_event or (window is not None and window.unit == "EVENTS")

    def _check_room(self) -> None:
        """An update that has no room lists first, then asks for enough, by the latest window."""
        size = self.clock.key - self.clock.floor
        earlier = ALWAYS if self.clock.floor == ALWAYS else self.clock.floor - 1
        for symbol in range(1, self.symbols):
            before = self._before({}, symbol, full=True, earlier_floor=earlier)
            after = self.code.run(before)
            if len(after.calls.rooms) != 1:
                raise WrongError(f"symbol {symbol}: an update without room writes nodes")
            node, wanted, lowest, floor, latest, waiting = after.calls.rooms[0]
            if waiting or (node, lowest, floor) != (FIRST_NEW, 1, earlier):
                raise WrongError(f"symbol {symbol}: room is asked for nodes that are still needed")
            if wanted < self._most_nodes:
                raise WrongError(f"an event makes {self._most_nodes} nodes, and asks for {wanted}")
            if earlier != ALWAYS and latest < earlier + size:
                raise WrongError("room is freed that the window of an event still needs")
