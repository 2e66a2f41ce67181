"""Conditions across events → the literals of definitions and of checks in a module."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from celc_runtime.plan import strategy
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.past_columns import PastColumns

from celc.codegen.correlated.absences import AbsenceCode, AbsentSymbols, terms_of
from celc.codegen.correlated.checks import CheckCode, EventCode
from celc.codegen.correlated.choices import ChoiceCode, SymbolsOfTypes
from celc.codegen.correlated.definition import ConditionFunction, DefinitionCode
from celc.codegen.correlated.graph_checks import GraphCode
from celc.codegen.correlated.links import link_lines
from celc.codegen.correlated.sums import limits_of, weigh_lines
from celc.codegen.correlated.varieties import holds_lines, same_lines, varieties_of
from celc.codegen.correlated.watched_parts import key_of_part, watched_part
from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.own_aggregates import OwnAggregateCode
from celc.codegen.text.emit import emit
from celc.codegen.text.templates import TemplateView
from celc.core.formula import Window, text_of_type
from celc.core.traversal import windows_in
from celc.normal import flat_form as flat
from celc.normal import normal_form as lp
from celc.normal.divide import joins_ends
from celc.normal.ends import ways_of
from celc.normal.normal_form import shown
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.carried import roles_later
from celc.plan.code import code as in_module
from celc.plan.deadlines import Deadline, deadlines_of
from celc.plan.growth import growth_of
from celc.plan.program import Program
from celc.plan.strategy import ByDefinition, Checked
from celc.plan.tables import Kind, symbols_of


@frozen
class DefinitionLiteral(TemplateView):
    """The module's `ByDefinition`, with a function for each of its conditions. `columns` are the
    variables with the remembered columns of past events."""

    template: ClassVar[str] = "definition"

    number: int
    conditions: tuple[ConditionFunction, ...]
    columns: tuple[str, ...]
    definition: str


@frozen
class ChecksLiteral(TemplateView):
    """The module's `Checked`, with its functions `admits` and `completes`.

    - `roles` are the roles of an event of each kind, as a bit set; a kind has `kind_bits` bits.
    - `lines` and `complete_lines` are the bodies of the functions.
    - `step_lines` and `end_lines` are those of `steps` and `ends`; empty: a graph has the functions
      of the listing.
    - `weigh_lines`, `holds_lines` and `same_lines` are the bodies of `weigh`, `holds` and `same`,
      if there are any.
    - `link_lines` are the body of `links`, if matches are runs that adjoin.
    - `columns`: see `DefinitionLiteral`.
    """

    template: ClassVar[str] = "checks"

    number: int
    roles: tuple[int, ...]
    absents: tuple[AbsentSymbols, ...]
    columns: tuple[str, ...]
    kind_bits: int
    kind_mask: int
    lines: tuple[str, ...]
    complete_lines: tuple[str, ...]
    step_lines: tuple[str, ...]
    end_lines: tuple[str, ...]
    weigh_lines: tuple[str, ...]
    holds_lines: tuple[str, ...]
    same_lines: tuple[str, ...]
    link_lines: tuple[str, ...]
    checks: str


def definition_literal(
    number: int, listing: ByDefinition, program: Program, code: ConditionCode, own: OwnAggregateCode
) -> tuple[DefinitionLiteral, strategy.ByDefinition, set[str]]:
    """The definition of a query whose matches it lists, its name in the module, and the attributes
    that it reads.

    Adds long IN lists to those of `code`, the query's conditions on single events.
    """
    types = _symbols_of_types(program)
    choices = ChoiceCode(number, code.imports, members=code.members, symbols=types, own=own)
    windows = _numbered_windows(program)
    writer = DefinitionCode(number, program.alphabet, program.tables.symbol_of, choices, windows)
    query = program.query
    by_start = query.per_start is not None and query.compares_ends
    selects = query.strategy not in ("ALL", "ANY") or by_start
    formula = writer.of(listing.form, top=selects)
    numbers = {one: place for place, one in enumerate(deadlines_of(listing))}
    ways = tuple(
        strategy.Way(in_module(writer.of(form)), _deadline(absence, numbers))
        for form, absence in ways_of(listing.form, selects=selects)
    )
    symbols = choices.asks_for_symbols
    definition = strategy.ByDefinition(
        in_module(formula),
        _remembers(choices, symbols=symbols),
        sees_all=listing.sees_all,
        ways=ways,
        chooses=bool(ways) and selects,
        joins_ends=bool(ways) and joins_ends(query),
        growth=growth_of(listing.form, query),
    )
    literal = DefinitionLiteral(
        number,
        tuple(writer.conditions.values()),
        _columns(choices, windows, symbols=symbols),
        emit(definition, code.imports),
    )
    return literal, in_module(f"DEFINITION_{number}", definition), choices.attributes_read


# Long: a list of the fields of one literal.
def checks_literal(
    number: int,
    checks: Checked,
    program: Program,
    code: ConditionCode,
    own: OwnAggregateCode,
    runs: AdjoiningRuns | None = None,
) -> tuple[ChecksLiteral, strategy.Checked, EventCode]:
    """The checks of a query while matches are listed, their name in the module, and the writer of
    its conditions.

    The writer knows the attributes that the conditions read. Adds long IN lists to those of `code`,
    the query's conditions on single events.
    """
    types = _symbols_of_types(program)
    choices = EventCode(number, code.imports, members=code.members, symbols=types, own=own)
    sets = ChoiceCode(
        number,
        code.imports,
        choices.attributes,
        choices.texts,
        choices.members,
        choices.text_attributes,
        choices.codes,
        choices.ranks,
        choices.spelled,
        choices.spellings,
        types,
        own=own,
    )
    writer = CheckCode(choices, sets, program.kind_bits, later=roles_later(program.tables))
    windows = _numbered_windows(program)
    absences = AbsenceCode(writer, program, windows)
    lines = [line for window in checks.windows for line in writer.window_lines(window, windows)]
    for place, part in enumerate(checks.absent_parts):
        lines += absences.absent_part_lines(place, part)
    for place, before in enumerate(checks.parts_before, len(checks.absent_parts)):
        lines += absences.part_before_lines(place, before)
    for first in checks.first:
        lines += absences.first_lines(first)
    lines += writer.lines(checks.clauses)
    lines += writer.running_lines(checks.running_functions)
    fails_by = writer.states if checks.fails_alike else 0
    complete_lines = writer.complete_lines(checks.clauses)
    watched: tuple[flat.AbsentPart | flat.KeyedPart | flat.PartBefore | flat.PartAfter, ...]
    watched = (*checks.absent_parts, *checks.parts_before)
    names = ["latest"] * len(checks.absent_parts) + ["preceded"] * len(checks.parts_before)
    of_absent: list[int | None] = []
    for absent in checks.absent:
        of_absent.append(None if absent.part is None else len(watched))
        if absent.part is not None:
            watched, names = (*watched, absent.part), [*names, "started"]
    for after in checks.after:
        if isinstance(after, flat.EventAfter):
            continue
        after_lines = absences.part_after_lines(len(watched), after)
        if after.from_start:
            complete_lines += after_lines
        else:
            lines += after_lines
        watched, names = (*watched, after), [*names, "ceiling"]
    parts = tuple(
        watched_part(
            part,
            windows,
            lambda event: symbols_of((event,), program.alphabet, program.tables),
            terms_of(key_of_part(part)),
        )
        for part in watched
    )
    keys = (*(one.key for one in parts), *(one.key + one.asking for one in absences.nearest))
    choices.key_attributes |= {term.attribute for key in keys for term in key}
    for absent, column in zip(checks.absent, of_absent, strict=True):
        complete_lines += absences.absent_lines(absent, column)
    for event in checks.events_before:
        complete_lines += absences.event_before_lines(event)
    events_after = [after for after in checks.after if isinstance(after, flat.EventAfter)]
    for event_after in events_after:
        complete_lines += absences.event_after_lines(event_after)
    begins = bool(checks.events_before or events_after)
    symbols = bool(absences.symbols) or choices.asks_for_symbols or sets.asks_for_symbols
    nearest = tuple(absences.nearest)
    code.imports.use("njit", "np")
    kinds = program.tables.kinds
    weighs = tuple(weigh_lines(checks.sum_bounds, writer))
    holds = tuple(holds_lines(checks.variety_bounds, writer))
    same = tuple(same_lines(checks.variety_bounds, writer))
    links = () if runs is None else tuple(link_lines(runs, choices))
    symbols = symbols or choices.asks_for_symbols
    steps, ends, states = _of_graph(writer, checks, windows, fails_by)
    columns = _columns(
        choices, windows, parts=names, begins=begins, nearest=len(nearest), symbols=symbols
    )
    remembers = _remembers(choices, parts=parts, begins=begins, nearest=nearest, symbols=symbols)
    checked = _checked(
        number, checks, kinds, remembers, states=max(writer.states, *states), fails_by=fails_by
    )
    checked = replace(checked, carries=None if checks.carried is None else states[0])
    if steps:
        in_graph = in_module(f"steps_{number}"), in_module(f"ends_{number}")
        checked = replace(checked, steps=in_graph[0], ends=in_graph[1])
    literal = ChecksLiteral(
        number,
        writer.roles_of(kinds),
        tuple(absences.symbols),
        columns,
        program.kind_bits,
        (1 << program.kind_bits) - 1,
        tuple(lines),
        tuple(complete_lines),
        steps,
        ends,
        weighs,
        holds,
        same,
        links,
        emit(checked, code.imports),
    )
    return literal, in_module(f"CHECKS_{number}", checked), choices


def _checked(
    number: int,
    checks: Checked,
    kinds: Sequence[Kind],
    remembers: strategy.Remembers,
    *,
    states: int,
    fails_by: int,
) -> strategy.Checked:
    """The checks of query `number`, by functions of the module."""
    looks = {marks: n for n, marks in enumerate(dict.fromkeys(kind.marks for kind in kinds))}
    searches = checks.greatest or checks.in_order
    weighs, varieties = bool(checks.sum_bounds), bool(checks.variety_bounds)
    return strategy.Checked(
        in_module(f"admits_{number}"),
        in_module(f"completes_{number}"),
        remembers,
        states=states,
        supports=tuple(bool(shown(frozenset(kind.marks))) for kind in kinds),
        selector=checks.selector,
        distinct=checks.distinct,
        in_order=checks.in_order,
        fails_by=fails_by,
        weigh=in_module(f"weigh_{number}") if weighs else None,
        limits=limits_of(checks.sum_bounds),
        holds=in_module(f"holds_{number}") if varieties else None,
        same=in_module(f"same_{number}") if varieties else None,
        varieties=varieties_of(checks.variety_bounds),
        greatest=checks.greatest,
        absorbs=checks.absorbs(kinds) if searches else (),
        looks=tuple(looks[kind.marks] for kind in kinds) if searches else (),
        rounds=tuple(checks.rounds in kind.marks for kind in kinds) if checks.rounds else (),
        sees_all=checks.sees_all,
        apart=checks.apart,
        outside=checks.looks_outside,
        unites=checks.unites,
    )


def _of_graph(
    listing: CheckCode, checks: Checked, windows: Mapping[Window, int], fails_by: int
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, int]]:
    """The bodies of `steps` and `ends`, how many numbers decide in a graph, and how many these
    functions need. Empty: `admits` and `completes` keep the same numbers."""
    if checks.carried is None:
        return (), (), (0, 0)
    if checks.fails_alike and not any(one.when == "complete" for one in checks.clauses):
        return (), (), (fails_by, fails_by)
    writer = replace(listing, states=0, waiting=[], _room=None)
    code = GraphCode(writer, checks, checks.carried)
    of_windows = [line for one in checks.windows for line in writer.window_lines(one, windows)]
    steps = tuple(code.step_lines(of_windows))
    kept = writer.states
    ends = tuple(code.end_lines())
    return steps, ends, (kept, writer.states)


def _deadline(absence: lp.AbsenceAfter | None, numbers: Mapping[Deadline, int]) -> int | None:
    """The number of the deadline that an absence sets; None: a match has none."""
    if absence is None:
        return None
    return numbers[Deadline(absence.length, absence.from_start)]


def _symbols_of_types(program: Program) -> SymbolsOfTypes:
    found: dict[str, set[int]] = {}
    symbol_of = program.tables.symbol_of
    for number, symbol in enumerate(program.alphabet.symbols):
        if symbol.type is not None:
            found.setdefault(text_of_type(symbol.type), set()).add(symbol_of[number])
    return {text: frozenset(symbols) for text, symbols in found.items()}


def _numbered_windows(program: Program) -> dict[Window, int]:
    """The numbers of the windows of parts, as the plan lists them."""
    return {window: n for n, window in enumerate(windows_in(program.query.formula))}


def _columns(
    choices: ChoiceCode,
    windows: Collection[Window],
    *,
    parts: Sequence[str] = (),
    begins: bool = False,
    nearest: int = 0,
    symbols: bool = False,
) -> tuple[str, ...]:
    """The variables with the remembered columns of past events."""
    columns = PastColumns(
        windows=_numbered(len(windows), "key", "floor"),
        parts=[f"{kind}_{n}" for n, kind in enumerate(parts)],
        begins=["begin"] if begins else [],
        nearest=_numbered(nearest, "nearest"),
        values=_numbered(len(choices.attributes), "column", "valid"),
        texts=_numbered(len(choices.texts), "text"),
        codes=_numbered(len(choices.codes), "code"),
        ranks=_numbered(len(choices.ranks), "rank"),
        spelled=_numbered(len(choices.spelled), "spelled"),
        symbols=["symbol"] if symbols else [],
        letters=["letters", "stops"] if choices.spelled or choices.spellings else [],
    )
    return tuple(columns.in_order())


def _numbered(count: int, *kinds: str) -> list[str]:
    return [f"{kind}_{n}" for n in range(count) for kind in kinds]


def _remembers(
    choices: ChoiceCode,
    *,
    parts: tuple[strategy.WatchedPart, ...] = (),
    begins: bool = False,
    nearest: tuple[strategy.NearestEvent, ...] = (),
    symbols: bool = False,
) -> strategy.Remembers:
    """The remembered columns, which `_columns` names."""
    return strategy.Remembers(
        columns=tuple(choices.attributes),
        texts=tuple(choices.texts),
        codes=tuple(choices.codes),
        ranks=tuple(choices.ranks),
        spelled=tuple(choices.spelled),
        spellings=tuple(choices.spellings),
        symbols=symbols,
        parts=parts,
        begins=begins,
        nearest=nearest,
    )
