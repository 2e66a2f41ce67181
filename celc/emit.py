"""Transition tables → the text of a Python module.

All decisions are made here and handed to the Jinja templates as plain values; the templates hold
the layout. The result is formatted by black, so its bytes depend on the query and on the pinned
versions of Jinja and black alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import black
import jinja2
from black.mode import TargetVersion

from celc import formula as core
from celc.automaton import Automaton, State
from celc.determinize import START, DetState
from celc.earliest import EarliestTables, is_quiet
from celc.emit_checks import CheckCode, EventCode, roles_later
from celc.emit_choices import SET_FUNCTIONS, ChoiceCode
from celc.emit_conditions import ConditionCode
from celc.emit_definition import DefinitionCode, nests_selectors
from celc.emit_joins import ROW_FUNCTIONS
from celc.emit_output import EXPRESSION_CONSTRUCTORS, attributes_in, expression_fields
from celc.emit_update import update_view
from celc.escape import comment_text, literal_lines, string_literal
from celc.joins import Joins
from celc.letters import Letters, Mask, bits_of
from celc.normal_form import Event, EventClause, NormalForm, shown
from celc.normalize import output_labels
from celc.piles import StraightLine, why_not_straight_line, why_straight_line
from celc.predicates import Alphabet, Symbol, TypeConditions
from celc.roles import Checks
from celc.show import show_clauses, show_labels
from celc.tables import Contexts, Kind, SelectionTables, Tables
from celc.version import VERSION

View = dict[str, Any]
"""What a template is given."""

_MAX_IN_TABLE = 14
"""Up to this many conditions on a type, one table over all their combinations is small enough."""

_STEP = 6
"""Beyond, symbols are looked up in steps of this many conditions."""

_FEW_CONDITIONS = 2
"""Up to this many conditions on a type, symbols are selected without a table (and vectorise)."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """All that code is generated from, for one query."""

    query: core.Query
    automaton: Automaton
    alphabet: Alphabet
    tables: Tables
    straight_line: StraightLine | None
    selection: SelectionTables | EarliestTables | None = None
    """A selector under WITHIN that is run over each window."""
    greedy: bool = False
    """SELECT LAST under WITHIN, found from the latest event back."""
    definition: NormalForm | None = None
    """The formula with its conditions across events, where only the definitions decide them."""
    joins: Joins | None = None
    """Equalities that are decided by keys of states."""
    checks: Checks | None = None
    """Conditions across events that are decided while matches are listed."""
    max_work: int = 0
    """Steps that these may take, or the definitions."""

    @property
    def output_kinds(self) -> tuple[Kind, ...]:
        """The kinds of the events of the matches that are listed."""
        if isinstance(self.selection, EarliestTables):
            return self.selection.kinds
        if self.selection is not None:
            return self.selection.tables.kinds
        if self.greedy:
            # Twice: an event that can be the first of a match, but is not.
            inside = tuple(Kind(kind.marks, starts=False) for kind in self.tables.kinds)
            return (*self.tables.kinds, *inside)
        return self.tables.kinds

    @property
    def kind_bits(self) -> int:
        """How many bits a kind takes."""
        most = max(len(self.tables.kinds), len(self.output_kinds))
        return max(1, (most - 1).bit_length())


def emit_module(
    queries: Sequence[Compiled], text: str, command: str, tiebreak: Sequence[str]
) -> str:
    """The generated module of a file: its queries, the file's text, the command that was given."""
    views = [
        _query_view(number, compiled, tuple(tiebreak))
        for number, compiled in enumerate(queries, start=1)
    ]
    source = (
        _environment()
        .get_template("module.py.jinja")
        .render(
            version=string_literal(VERSION),
            version_comment=comment_text(VERSION),
            command=comment_text(command),
            text=literal_lines(text),
            queries=views,
            arena_imports=_import_lines(
                sorted({name for view in views for name in view["arena_names"]})
            ),
            batch_names=sorted({name for view in views for name in view["batch_names"]}),
            helpers=sorted({name for view in views for name in view["helpers"]}),
            plan_names=sorted({name for view in views for name in view["plan_names"]}),
            any_lists=any(view["pile_count"] is None for view in views),
            selection_names=[
                name for name in ("earliest", "selection") if any(view[name] for view in views)
            ],
            any_piles=any(view["pile_count"] is not None for view in views),
            any_checks=any(view["checks"] for view in views),
            join_names=_join_names(views),
            definition_names=sorted(
                {n for v in views if v["definition"] for n in v["definition"]["constructors"]}
            ),
            set_functions=sorted(
                {
                    name
                    for view in views
                    for part in (view["definition"], view["checks"])
                    if part
                    for name in part["functions"]
                }
            ),
        )
    )
    return black.format_str(source, mode=_MODE)


def _join_names(views: Sequence[View]) -> list[str]:
    """What keyed updates use of the module `joins`."""
    keyed = [view for view in views if view["joins"]]
    names = {"AHEAD", "Joins", "JoinTable", "Term", "fetch_ahead", "pile_at"}
    text = repr([(view["branches"], view["joins"]) for view in keyed])
    called = {name for name in ROW_FUNCTIONS if f" {name}(" in text}
    return sorted(names | called) if keyed else []


def _import_lines(names: list[str]) -> list[str]:
    """Names in lines that black leaves as they are, instead of one name per line."""
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < 66:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines


_MODE = black.Mode(target_versions={TargetVersion.PY311}, line_length=100)


def template_folder() -> Path:
    """Where the templates are: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).parent / "templates"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "templates"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folder(), encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


# --- one query ------------------------------------------------------------------------------------


def _query_view(number: int, compiled: Compiled, tiebreak: tuple[str, ...]) -> View:
    query, tables, plan = compiled.query, compiled.tables, compiled.straight_line
    code = ConditionCode(number)
    if compiled.joins is not None:
        code.read |= compiled.joins.attributes
    types = [
        _type_view(number, index, t, compiled, code)
        for index, t in enumerate(compiled.alphabet.types, 1)
    ]
    definition = _definition_view(number, compiled, code)
    checks = _checks_view(number, compiled, code)
    view: View = {
        "number": number,
        "definition": definition,
        "checks": checks,
        "joins": None,
        "strategy": query.strategy,
        "name": string_literal(query.name),
        "name_comment": comment_text(query.name),
        "types": types,
        "terms": [term for type_view in types for term in type_view["terms"]],
        "symbols": _symbol_comments(compiled),
        "states": _state_comments(compiled),
        "kinds": [
            comment_text(show_labels(kind.marks)) + (", can be the first" if kind.starts else "")
            for kind in compiled.output_kinds
        ],
        "members": [
            {"name": name, "lines": _number_lines(values), "dtype": dtype}
            for name, (values, dtype) in code.members.items()
        ],
        "pile_count": None if plan is None else len(plan.piles),
        "fleeting": [] if plan is None else sorted(plan.fleeting),
        "chosen_because": "" if plan is None else why_straight_line(plan),
        "tables_because": why_not_straight_line(tables) or "partitions interleave",
        "plan": _plan_view(compiled, code, tiebreak),
        "columns": list(code.attributes),
        "texts": list(code.texts),
        "helpers": code.helpers
        | (definition["helpers"] if definition else set())
        | (checks["helpers"] if checks else set())
        | ({"symbol_table"} if any(t["table"] and not t["steps"] for t in types) else set())
        | ({"symbol_steps"} if any(t["steps"] for t in types) else set()),
        "window": _window_view(query),
        "partitioned": bool(query.partition_by),
        # Not everything that the update finds is a match, then, and only a match consumes.
        "consumes": query.consume_by != "NONE" and not (definition or checks),
        "interleaved": query.consume_by == "ANY" and bool(query.partition_by),
    }
    view["arena_names"], view["batch_names"] = _imports(view)
    view["plan_names"] = _plan_imports(view)
    selection = compiled.selection
    view["selection"] = view["earliest"] = None
    if isinstance(selection, EarliestTables):
        view["earliest"] = _earliest_view(selection)
    elif selection is not None:
        view["selection"] = _selection_view(selection)
    if plan is None:
        view |= _tables_view(tables)
        view["contexts"] = None if tables.contexts is None else _contexts_view(tables.contexts)
    else:
        view |= update_view(plan, tables.kinds, compiled.joins, compiled.kind_bits, view["symbols"])
        view["arena_names"] += view["update_names"]
    return view


def _definition_view(number: int, compiled: Compiled, code: ConditionCode) -> View | None:
    """The definition of a query that needs it; what it reads is added to what conditions read."""
    form = compiled.definition
    if form is None:
        return None
    choices = ChoiceCode(number, members=code.members)
    writer = DefinitionCode(number, compiled.alphabet, compiled.tables.symbol_of, choices)
    selects = compiled.query.strategy not in ("ALL", "ANY")
    formula = writer.of(form, top=selects)
    code.read |= _read_by(choices)
    functions = {name for name in choices.helpers if name in SET_FUNCTIONS}
    return {
        "formula": formula,
        "conditions": list(writer.conditions.values()),
        "constructors": writer.constructors | ({"Condition"} if writer.conditions else set()),
        "helpers": choices.helpers - functions,
        "functions": functions,
        **_remembers_view(choices),
        "sees_all": nests_selectors(form, top=selects),
    }


def _read_by(choices: ChoiceCode) -> set[str]:
    return {*choices.attributes, *choices.codes} | choices.text_attributes


def _symbols_of(events: Sequence[Event], compiled: Compiled) -> list[bool]:
    """For each symbol of the kernel whether its events are among some."""
    alphabet, symbol_of = compiled.alphabet, compiled.tables.symbol_of
    found = {
        symbol_of[symbol]
        for event in events
        for symbol in alphabet.matching(event.type, event.clauses)
    }
    return [symbol in found for symbol in range(max(symbol_of) + 1)]


def _remembers_view(choices: ChoiceCode, *, symbols: bool = False) -> View:
    """What is remembered of past events, and what the columns of it are called in conditions."""
    columns = [
        f"{kind}_{n}" for n in range(len(choices.attributes)) for kind in ("column", "valid")
    ]
    for kind, names in (("text", choices.texts), ("code", choices.codes), ("rank", choices.ranks)):
        columns += [f"{kind}_{n}" for n in range(len(names))]
    if symbols:
        columns.append("symbol")
    return {
        "columns": columns,
        "remembers": {
            "columns": _tuple(map(string_literal, choices.attributes)),
            "texts": _tuple(choices.texts),
            "codes": _tuple(map(string_literal, choices.codes)),
            "ranks": _tuple(map(string_literal, choices.ranks)),
            **({"symbols": True} if symbols else {}),
        },
    }


def _checks_view(number: int, compiled: Compiled, code: ConditionCode) -> View | None:
    """What is checked while matches are listed; what it reads is added to what conditions read."""
    checks = compiled.checks
    if checks is None:
        return None
    choices = EventCode(number, members=code.members)
    # Both read the same columns.
    sets = ChoiceCode(
        number,
        choices.attributes,
        choices.texts,
        choices.members,
        choices.helpers,
        choices.text_attributes,
        codes=choices.codes,
        ranks=choices.ranks,
    )
    writer = CheckCode(choices, sets, compiled.kind_bits, later=roles_later(compiled.tables))
    lines = writer.lines(checks.clauses)
    complete_lines = writer.complete_lines(checks.clauses)
    for place, absent in enumerate(checks.absent):
        complete_lines += writer.absent_lines(place, absent)
    code.read |= _read_by(choices)
    functions = {name for name in choices.helpers if name in SET_FUNCTIONS}
    if complete_lines:
        functions.add("events_of_role")
    kinds = compiled.tables.kinds
    return {
        "lines": lines,
        "complete_lines": complete_lines,
        "absent": [_symbols_of(absent.events, compiled) for absent in checks.absent],
        "states": writer.states,
        "roles": writer.roles_of(kinds),
        "kind_bits": compiled.kind_bits,
        "kind_mask": (1 << compiled.kind_bits) - 1,
        "helpers": choices.helpers - functions,
        "functions": functions,
        **_remembers_view(choices, symbols=bool(checks.absent)),
        "supports": _tuple(str(bool(shown(frozenset(kind.marks)))) for kind in kinds),
        "strategy": string_literal(checks.strategy),
        "distinct": checks.distinct,
    }


def _type_view(
    number: int, index: int, conditions: TypeConditions, compiled: Compiled, code: ConditionCode
) -> View:
    symbols = {
        symbol.truth: compiled.tables.symbol_of[number]
        for number, symbol in enumerate(compiled.alphabet.symbols)
        if symbol.type == conditions.type and compiled.tables.symbol_of[number]
    }
    # Where no event of the type can matter, its conditions are not looked at either.
    asked = conditions.groups if symbols else ()
    clauses = [" & ".join(map(code.clause, group)) for group in asked]
    names = [f"holds_{index}_{bit}" for bit in range(len(clauses))]
    table = None
    steps = 0
    terms: list[str] = []
    if symbols and len(clauses) <= _FEW_CONDITIONS:
        terms = [
            f"((codes[row] == type_{index}){_test(names, truths)}) * {symbol}"
            for symbol, truths in _by_symbol(symbols).items()
        ]
    elif symbols:
        table = ", ".join(f"{truth}: {symbol}" for truth, symbol in symbols.items())
        steps = -(-len(clauses) // _STEP) if len(clauses) > _MAX_IN_TABLE else 0
        found = f"step_{index}_{steps - 1}" if steps else f"SYMBOLS_{number}_{index}[truth_{index}]"
        terms = [f"(codes[row] == type_{index}) * {found}"]
    return {
        "index": index,
        "comment": comment_text(conditions.type.name),
        "clauses": [
            {
                "bit": bit,
                "name": names[bit],
                "code": clause,
                "comment": comment_text(show_clauses(written), limit=60),
            }
            for bit, (clause, written) in enumerate(zip(clauses, asked, strict=True))
        ],
        "terms": terms,
        "table": table,
        "step": _STEP,
        "steps": [
            {"number": k, "shift": k * _STEP, "size": 1 << _STEP, "mask": (1 << _STEP) - 1}
            for k in range(steps)
        ],
        "conditions": len(clauses),
    }


def _by_symbol(symbols: dict[int, int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for truth, symbol in symbols.items():
        found.setdefault(symbol, []).append(truth)
    return found


def _test(names: list[str], truths: list[int]) -> str:
    """That the conditions are true in one of these combinations, each a bit set."""
    if len(truths) == 1 << len(names):
        return ""
    for bit, name in enumerate(names):
        values = {truth >> bit & 1 for truth in truths}
        if len(values) == 1 and 2 * len(truths) == 1 << len(names):
            return f" & {name}" if values == {1} else f" & (not {name})"
    products = [
        " & ".join(name if truth >> bit & 1 else f"(not {name})" for bit, name in enumerate(names))
        for truth in truths
    ]
    return " & (" + " | ".join(f"({product})" for product in products) + ")"


def _symbol_comments(compiled: Compiled) -> list[str]:
    by_symbol: dict[int, list[str]] = {}
    for number, symbol in enumerate(compiled.alphabet.symbols):
        by_symbol.setdefault(compiled.tables.symbol_of[number], []).append(
            describe_symbol(compiled.alphabet, symbol)
        )
    lines = []
    for symbol_number in sorted(by_symbol):
        texts = by_symbol[symbol_number]
        text = "any other event" if symbol_number == 0 else " | ".join(texts)
        lines.append(f"{symbol_number}  {comment_text(text, limit=80)}")
    return lines


def describe_symbol(alphabet: Alphabet, symbol: Symbol) -> str:
    """A symbol class in words: its type, and which of the conditions hold and which do not."""
    if symbol.type is None:
        return "any other event"
    conditions = next(t for t in alphabet.types if t.type == symbol.type)
    parts = [
        show_clauses(group) if symbol.truth >> bit & 1 else _not(group)
        for bit, group in enumerate(conditions.groups)
    ]
    return symbol.type.name + (f"[{', '.join(parts)}]" if parts else "")


def _not(group: tuple[EventClause, ...]) -> str:
    return f"not {show_clauses(group)}" if len(group) == 1 else f"not ({show_clauses(group)})"


def _state_comments(compiled: Compiled) -> list[str]:
    return [
        f"{state}  {describe_state(compiled, DetState(state))}"
        for state in range(compiled.tables.states)
    ]


def describe_letters(letters: Letters, mask: Mask) -> str:
    """A set of letters in words: classes of events, and the contexts where not all are meant."""
    symbols: dict[int, list[int]] = {}
    for letter in bits_of(mask):
        symbols.setdefault(letter % letters.symbols, []).append(letter // letters.symbols)
    by_contexts: dict[tuple[int, ...], list[int]] = {}
    for symbol, contexts in symbols.items():
        by_contexts.setdefault(tuple(contexts), []).append(symbol)
    texts = []
    for contexts_there, symbols_there in by_contexts.items():
        text = "any"
        if len(symbols_there) < letters.symbols:
            named = [letters.alphabet.symbols[symbol] for symbol in symbols_there]
            text = " | ".join(describe_symbol(letters.alphabet, symbol) for symbol in named)
        if len(contexts_there) < letters.machine.contexts:
            text += f" in context {', '.join(map(str, contexts_there))}"
        texts.append(text)
    return " | ".join(texts)


def describe_state(compiled: Compiled, state: DetState) -> str:
    """A state by what has been read last and what can be read next, as in `after A, before B`."""
    if state == START:
        return "start"
    return describe_members(compiled.automaton, set(compiled.tables.members[state]))


def describe_members(automaton: Automaton, members: Collection[State]) -> str:
    """The same for a set of states of the nondeterministic automaton."""
    after: dict[str, None] = {}
    before: dict[str, None] = {}
    for transition in automaton.transitions:
        if transition.target in members:
            after.update(dict.fromkeys(transition.names))
        if transition.source in members:
            before.update(dict.fromkeys(transition.names))
    return comment_text(f"after {_either(after)}, before {_either(before)}", limit=90)


def _either(names: dict[str, None]) -> str:
    return " or ".join(names)


def _kind(query: core.Query, kind: Kind) -> str:
    labels = enumerate(output_labels(query))
    columns = [str(index) for index, label in labels if label in kind.marks]
    return f"Kind({_tuple(columns)}, starts={kind.starts})"


def _tuple(items: object) -> str:
    parts = list(items)  # type: ignore[call-overload]
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def _number_lines(values: tuple[int | float, ...]) -> list[str]:
    """Long lists of numbers as lines of one text: black takes minutes for a very long tuple."""
    parts = [repr(value) for value in values]
    return [" ".join(parts[at : at + 12]) for at in range(0, len(parts), 12)]


def _window_view(query: core.Query) -> View:
    window = query.window
    if window is None:
        return {"mode": "NO_WINDOW", "size": 0, "latest": "earliest"}
    if window.unit is core.WindowUnit.EVENTS:
        size = int(window.size)
        return {"mode": "EVENTS", "size": size, "latest": f"earliest + {size}"}
    attribute = window.attribute or query.order_by[0]
    if attribute.type in (core.DataType.FLOAT, core.DataType.DOUBLE):
        return {"mode": "FLOORS", "size": 0, "latest": str(2**63 - 1)}
    # Between whole numbers, a size with a fraction admits what the whole number below it does.
    size = math.floor(window.size)
    return {"mode": "KEYS", "size": size, "latest": f"earliest + {size}"}


def _plan_view(compiled: Compiled, code: ConditionCode, tiebreak: tuple[str, ...]) -> View:
    query = compiled.query
    tables, straight_line = compiled.tables, compiled.straight_line
    return {
        "streams": _tuple(string_literal(stream.name) for stream in query.streams),
        "types": _tuple(
            f"({string_literal(t.type.stream)}, {string_literal(t.type.name)})"
            for t in compiled.alphabet.types
        ),
        "other_types": _tuple(
            f"({string_literal(event_type.stream)}, {string_literal(event_type.name)})"
            for stream in query.streams
            for event_type in stream.event_types
            if event_type not in [t.type for t in compiled.alphabet.types]
        ),
        "type_column": query.needs_type_column,
        "stream_column": query.needs_stream_column,
        "attributes": _tuple(map(_attribute, attributes_read(query, code))),
        "order_candidates": _tuple(map(_attribute, common_attributes(query))),
        "columns": _tuple(map(string_literal, code.attributes)),
        "texts": _tuple(code.texts),
        "labels": _tuple(
            f"Label({string_literal(item.label)}, "
            f"{_tuple(string_literal(a.name) for a in item.attributes)})"
            for item in query.output
            if isinstance(item, core.OutputLabel)
        ),
        **expression_fields(query),
        "kinds": _tuple(_kind(query, kind) for kind in compiled.output_kinds),
        "kind_bits": compiled.kind_bits,
        "partition_by": _tuple(string_literal(a.name) for a in query.partition_by),
        "order_by": _tuple(string_literal(a.name) for a in query.order_by),
        "tiebreak": _tuple(map(string_literal, tiebreak)),
        "window": _window_literal(query),
        "consume_by": string_literal(query.consume_by),
        "limit": repr(1 if query.strategy == "ANY" else query.limit),
        "symbol_dtype": string_literal("uint8" if max(tables.symbol_of) < 255 else "uint16"),
        "piles": None if straight_line is None else len(straight_line.piles),
        "states": tables.states - 1,
        **({"contexts": len(tables.contexts.following)} if tables.contexts else {}),
        **({"latest_first": True} if compiled.greedy else {}),
        **({"all_events": True} if _remembers_all(compiled) else {}),
        **(
            {"max_work": f"{compiled.max_work:_}"} if compiled.checks or compiled.definition else {}
        ),
    }


def _remembers_all(compiled: Compiled) -> bool:
    """Whether a selection must be shown the events that the query does not ask about as well."""
    selection = compiled.selection
    if selection is None:
        return False
    quiet = (
        is_quiet(selection, 0) if isinstance(selection, EarliestTables) else selection.is_quiet(0)
    )
    return compiled.tables.contexts is not None or not quiet


def _attribute(attribute: core.AttributeDeclaration) -> str:
    return f"Attribute({string_literal(attribute.name)}, {string_literal(attribute.type.value)})"


def _window_literal(query: core.Query) -> str:
    window = query.window
    if window is None:
        return "None"
    attribute = "None" if window.attribute is None else string_literal(window.attribute.name)
    return f"Window({string_literal(window.unit.value)}, {window.size!r}, {attribute})"


def attributes_read(query: core.Query, code: ConditionCode) -> list[core.AttributeDeclaration]:
    """The columns that a query reads besides `type` and `stream`, in order of declaration.

    Those of its conditions, of SELECT, of PARTITION BY, of WITHIN and of the order.
    """
    needed = {a.name for a in (*query.partition_by, *query.order_by)}
    needed |= set(code.attributes) | code.text_attributes | code.read
    if query.window is not None and query.window.attribute is not None:
        needed.add(query.window.attribute.name)
    for item in query.output:
        if isinstance(item, core.OutputLabel):
            needed |= {a.name for a in item.attributes}
        else:
            needed |= attributes_in(item.value)
    found: dict[str, core.AttributeDeclaration] = {}
    for stream in query.streams:
        for event_type in stream.event_types:
            for attribute in event_type.attributes:
                if attribute.name in needed:
                    found.setdefault(attribute.name, attribute)
    return list(found.values())


def common_attributes(query: core.Query) -> list[core.AttributeDeclaration]:
    """The attributes that every event type of the query has: events can be ordered by them."""
    types = [event_type for stream in query.streams for event_type in stream.event_types]
    return [a for a in types[0].attributes if all(t.type_of(a.name) is not None for t in types[1:])]


def _imports(view: View) -> tuple[list[str], list[str]]:
    """What a straight-line update uses of the modules `arena` and `batch`."""
    if view["pile_count"] is None:
        return [], []
    names = ["ARENA_FULL", "DONE", "EARLIEST", "ENTRY", "FIRED", "LOWEST", "NEXT_NODE", "ROW"]
    names += ["SHIFT", "USABLE", "next_relevant", "put", "reserve"]
    if view["partitioned"]:
        names.append("PART")
    if view["fleeting"]:
        names.append("LAST")
    if view["fleeting"] or (view["pile_count"] and (view["partitioned"] or view["consumes"])):
        names.append("NEVER")
    window = view["window"]
    return names, ["window_floor"] if window["mode"] == "KEYS" else []


def _plan_imports(view: View) -> list[str]:
    """The constructors that the plan is written with."""
    text = repr((view["plan"], view["definition"], view["checks"]))
    names = ["Attribute", "Kind", "Label", "TextComparison", "TextCondition", "Window"]
    names += EXPRESSION_CONSTRUCTORS
    return ["CompiledQuery", "Plan", "module_names", *(n for n in names if f"{n}(" in text)]


# --- the general engine ---------------------------------------------------------------------------


_MOST_WRITTEN_OUT = 2000
"""Entries of a table (states × symbols) that are written as Python; more are text, a line each:
black takes seconds for thousands of tuples, and nobody reads them."""


def _tables_view(tables: Tables) -> View:
    starts: list[list[str]] = []
    moves: dict[tuple[int, int], list[str]] = {}
    for symbol, steps in enumerate(tables.steps):
        starts.append([])
        for step in steps:
            target = -1 if step.target is None else step.target - 1
            move = f"({step.kind}, {int(step.target is None)}, {target})"
            for source in step.sources:
                if source == START:
                    starts[symbol].append(move)
                else:
                    moves.setdefault((source - 1, symbol), []).append(move)
    large = tables.states * tables.symbols > _MOST_WRITTEN_OUT
    return {
        "move_lines": _move_lines(tables) if large else None,
        "skip_lines": [
            " ".join("-1" if target is None else str(target - 1) for target in row)
            for row in tables.skip[1:]
        ],
        "state_count": tables.states - 1,
        "symbol_count": tables.symbols,
        "start_rows": [_tuple(row) for row in starts],
        "move_rows": [
            {
                "state": state,
                "rows": [
                    f"{symbol}: {_tuple(moves[state, symbol])}"
                    for symbol in range(tables.symbols)
                    if (state, symbol) in moves
                ],
            }
            for state in range(tables.states - 1)
        ],
        "skip_rows": [
            _tuple("-1" if target is None else str(target - 1) for target in tables.skip[state])
            for state in range(1, tables.states)
        ],
        "idle": _tuple(str(tables.is_idle(symbol)) for symbol in range(tables.symbols)),
    }


def _move_lines(tables: Tables) -> list[str]:
    moves = [
        (source - 1, symbol, step.kind, int(step.target is None), (step.target or 0) - 1)
        for symbol, steps in enumerate(tables.steps)
        for step in steps
        for source in step.sources
        if source != START
    ]
    return [" ".join(map(str, move)) for move in sorted(moves, key=lambda move: move[:2])]


def _contexts_view(contexts: Contexts) -> View:
    return {
        "following": [_tuple(map(str, row)) for row in contexts.following],
        "letters": [_tuple(map(str, row)) for row in contexts.letters],
    }


def _earliest_view(tables: EarliestTables) -> View:
    return {
        "marks": [
            ", ".join(f"{n}: ({way[0]}, {way[1]})" for n, way in enumerate(row) if way is not None)
            for row in tables.marks
        ],
        "end_kinds": [
            ", ".join(f"{n}: {kind}" for n, kind in enumerate(row) if kind is not None)
            for row in tables.end_kinds
        ],
        "skip": [
            _tuple("-1" if target is None else str(target) for target in row) for row in tables.skip
        ],
        "sets": [_tuple(map(str, sorted(states))) for states in tables.sets],
        "ends": _tuple(map(str, tables.ends)),
        "back": [_tuple(map(str, row)) for row in tables.back],
    }


def _selection_view(selection: SelectionTables) -> View:
    letters = range(len(selection.following[0]))
    return {
        "following": [_tuple(map(str, row)) for row in selection.following],
        "symbols": [_tuple(map(str, row)) for row in selection.symbols],
        "quiet": _tuple(str(selection.is_quiet(letter)) for letter in letters),
        **_tables_view(selection.tables),
    }
