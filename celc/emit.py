"""Transition tables → the text of a Python module.

All decisions are made here and handed to the Jinja templates as plain values; the templates hold
the layout. The result is formatted by black, so its bytes depend on the query and on the pinned
versions of Jinja and black alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from celc import formula as core
from celc.deadline import look
from celc.describe import describe_state, describe_symbol
from celc.determinize import DetState
from celc.emit_across import checks_view, definition_view, join_names
from celc.emit_branch_free import branch_free_view
from celc.emit_conditions import ConditionCode
from celc.emit_output import EXPRESSION_CONSTRUCTORS, attributes_in, expression_fields
from celc.emit_relevant import RELEVANT_CONSTRUCTORS, has_selectors, relevant_events
from celc.emit_strategy import listing_call, update_call
from celc.emit_tables import contexts_view, earliest_view, selection_view, tables_view
from celc.emit_update import update_view
from celc.escape import comment_text, literal_lines, string_literal, tuple_text
from celc.layout import formatted
from celc.normalize import output_labels
from celc.predicates import TypeConditions
from celc.program import Program
from celc.show import show_clauses, show_labels
from celc.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InRuns,
    InWindow,
    Keyed,
    Listing,
    UnionLists,
)
from celc.tables import Kind
from celc.version import VERSION

View = dict[str, Any]
"""What a template is given."""

_MAX_IN_TABLE = 14
"""Up to this many conditions on a type, one table over all their combinations is small enough."""

_STEP = 6
"""Beyond, symbols are looked up in steps of this many conditions."""

_OF_ROW = re.compile(r"\b((?:column|valid|text)_\d+)\[row\]")
"""What conditions read of an event: loaded once for all of them, for LLVM does not see by itself
that it could be, and the loop would take half as long again."""

_FEW_CONDITIONS = 2
"""Up to this many conditions on a type, symbols are selected without a table (and vectorise)."""


def emit_module(
    queries: Sequence[Program], text: str, command: str, tiebreak: Sequence[str]
) -> str:
    """The generated module of a file: its queries, the file's text, the command that was given."""
    views = [
        _query_view(number, program, tuple(tiebreak))
        for number, program in enumerate(queries, start=1)
    ]
    start = (
        _environment()
        .get_template("module_start.py.jinja")
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
            strategy_names=sorted({name for view in views for name in view["strategy_names"]}),
            transition_names=sorted({name for view in views for name in view["transition_names"]}),
            any_piles=any(view["pile_count"] is not None for view in views),
            list_names=sorted({v["list"] for v in views if v["pile_count"] is not None}),
            join_names=join_names(views),
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
    template = _environment().get_template("query.py.jinja")
    parts = [start]
    for view in views:
        look()
        parts.append(template.render(query=view, queries=views) + "\n")
    parts.append(_environment().get_template("module_end.py.jinja").render(queries=views))
    look(doing="putting the module into lines")
    return formatted(parts)


def _import_lines(names: list[str]) -> list[str]:
    """Names in lines that black leaves as they are, instead of one name per line."""
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < 66:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines


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


def _query_view(number: int, program: Program, tiebreak: tuple[str, ...]) -> View:
    query, tables, update = program.query, program.tables, program.update
    plan = None if isinstance(update, UnionLists) else update.piles
    keys = update.keys if isinstance(update, Keyed) else None
    look(query.formula.span, "writing the module")
    code = ConditionCode(number)
    if keys is not None:
        code.read |= keys.attributes
    types = [
        _type_view(number, index, t, program, code)
        for index, t in enumerate(program.alphabet.types, 1)
    ]
    definition = checks = None
    match program.listing:
        case ByDefinition() as listing:
            definition = definition_view(number, program, listing, code)
        case Checked() as listing:
            checks = checks_view(number, program, listing, code)
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
        "symbols": _symbol_comments(program),
        "states": _state_comments(program),
        "kinds": [
            comment_text(show_labels(kind.marks)) + (", can be the first" if kind.starts else "")
            for kind in program.output_kinds
        ],
        "members": [
            {"name": name, "lines": _number_lines(values), "dtype": dtype}
            for name, (values, dtype) in code.members.items()
        ],
        "pile_count": None if plan is None else len(plan.piles),
        "branch_free": None,
        "list": "list_fired",
        "fleeting": [] if plan is None else sorted(plan.fleeting),
        "chosen_because": update.reason,
        "plan": _plan_view(program, code, tiebreak),
        "columns": list(code.attributes),
        "texts": list(code.texts),
        "helpers": code.helpers
        | (definition["helpers"] if definition else set())
        | (checks["helpers"] if checks else set())
        | ({"symbol_table"} if any(t["table"] and not t["steps"] for t in types) else set())
        | ({"symbol_steps"} if any(t["steps"] for t in types) else set()),
        "window": _window_view(query),
        "partitioned": bool(query.partition_by),
        "consumes": program.consumes,
        "interleaved": query.consume_by == "ANY" and bool(query.partition_by),
    }
    view["arena_names"] = ["BLOCK"]
    keyed_window = plan is not None and view["window"]["mode"] == "KEYS"
    view["batch_names"] = ["block_of"] if code.attributes else []
    view["batch_names"] += ["window_floor"] if keyed_window else []
    view["plan_names"] = _plan_imports(view)
    view["selection"] = view["earliest"] = None
    match program.listing:
        case EarliestInWindow(tables=earliest):
            view["earliest"] = earliest_view(earliest)
        case InWindow(tables=selection):
            view["selection"] = selection_view(selection)
    if plan is None:
        view |= tables_view(tables)
        view["contexts"] = None if tables.contexts is None else contexts_view(tables.contexts)
    else:
        view |= update_view(plan, tables.kinds, keys, program.kind_bits, view["symbols"])
        if isinstance(update, BranchFree):
            view |= branch_free_view(plan, tables.kinds, program.kind_bits, view["symbols"])
        if isinstance(program.listing, InRuns):
            view["list"] = "list_runs"
        view["arena_names"] += _arena_names(view)
    runs = update_call(number, update, view["window"]["mode"], view["joins"])
    lists = listing_call(number, program.listing)
    view["updated_by"], view["listed_by"] = runs.text, lists.text
    view["listed_because"] = program.listing.reason
    view["strategy_names"] = runs.of_strategy | lists.of_strategy
    view["transition_names"] = runs.of_transitions | lists.of_transitions
    return view


def _type_view(
    number: int, index: int, conditions: TypeConditions, program: Program, code: ConditionCode
) -> View:
    look()
    symbols = {
        symbol.truth: program.tables.symbol_of[number]
        for number, symbol in program.alphabet.numbered(conditions.type)
        if program.tables.symbol_of[number]
    }
    # Where no event of the type can matter, its conditions are not looked at either.
    asked = conditions.groups if symbols else ()
    clauses = [_OF_ROW.sub(r"\1", " & ".join(map(code.clause, group))) for group in asked]
    names = [f"holds_{index}_{bit}" for bit in range(len(clauses))]
    table = None
    steps = 0
    terms: list[str] = []
    if symbols and len(clauses) <= _FEW_CONDITIONS:
        terms = [
            f"((code == type_{index}){_test(names, truths)}) * {symbol}"
            for symbol, truths in _by_symbol(symbols).items()
        ]
    elif symbols:
        table = ", ".join(f"{truth}: {symbol}" for truth, symbol in symbols.items())
        steps = -(-len(clauses) // _STEP) if len(clauses) > _MAX_IN_TABLE else 0
        found = f"step_{index}_{steps - 1}" if steps else f"SYMBOLS_{number}_{index}[truth_{index}]"
        terms = [f"(code == type_{index}) * {found}"]
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


def _symbol_comments(program: Program) -> list[str]:
    by_symbol: dict[int, list[str]] = {}
    for number, symbol in enumerate(program.alphabet.symbols):
        look()
        by_symbol.setdefault(program.tables.symbol_of[number], []).append(
            describe_symbol(program.alphabet, symbol)
        )
    lines = []
    for symbol_number in sorted(by_symbol):
        texts = by_symbol[symbol_number]
        text = "any other event" if symbol_number == 0 else " | ".join(texts)
        lines.append(f"{symbol_number}  {comment_text(text, limit=80)}")
    return lines


def _state_comments(program: Program) -> list[str]:
    return [
        f"{state}  {describe_state(program, DetState(state))}"
        for state in range(program.tables.states)
    ]


def _kind(column_of: Mapping[str, int], kind: Kind) -> str:
    columns = [str(index) for index in sorted(column_of[m] for m in kind.marks if m in column_of)]
    return f"Kind({tuple_text(columns)}, starts={kind.starts})"


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


def _plan_view(program: Program, code: ConditionCode, tiebreak: tuple[str, ...]) -> View:
    query = program.query
    tables = program.tables
    column_of = {label: column for column, label in enumerate(output_labels(query))}
    asked = {(t.type.stream, t.type.name) for t in program.alphabet.types}
    relevant = relevant_events(program, sees_all_events=_sees_all_events(program.listing))
    return {
        "streams": tuple_text(string_literal(stream.name) for stream in query.streams),
        "types": tuple_text(
            f"({string_literal(t.type.stream)}, {string_literal(t.type.name)})"
            for t in program.alphabet.types
        ),
        "other_types": tuple_text(
            f"({string_literal(event_type.stream)}, {string_literal(event_type.name)})"
            for stream in query.streams
            for event_type in stream.event_types
            if (event_type.stream, event_type.name) not in asked
        ),
        "type_column": query.needs_type_column,
        "stream_column": query.needs_stream_column,
        "attributes": tuple_text(map(_attribute, attributes_read(query, code))),
        "order_candidates": tuple_text(map(_attribute, common_attributes(query))),
        "columns": tuple_text(map(string_literal, code.attributes)),
        "texts": tuple_text(code.texts),
        "labels": tuple_text(
            f"Label({string_literal(item.label)}, "
            f"{tuple_text(string_literal(a.name) for a in item.attributes)})"
            for item in query.output
            if isinstance(item, core.OutputLabel)
        ),
        **expression_fields(query),
        "kinds": tuple_text(_kind(column_of, kind) for kind in program.output_kinds),
        "kind_bits": program.kind_bits,
        "partition_by": tuple_text(string_literal(key.name) for key in query.partition_by),
        "order_by": tuple_text(string_literal(a.name) for a in query.order_by),
        "tiebreak": tuple_text(map(string_literal, tiebreak)),
        "window": _window_literal(query),
        "consume_by": string_literal(query.consume_by),
        "limit": repr(1 if query.strategy == "ANY" else query.limit),
        "symbol_dtype": string_literal("uint8" if max(tables.symbol_of) < 255 else "uint16"),
        **chosen_keys(query),
        **({"nested_selectors": True} if has_selectors(query.formula) else {}),
        **({"relevant": relevant} if relevant is not None else {}),
        **(
            {"max_work": f"{program.listing.max_work:_}"}
            if isinstance(program.listing, Checked | ByDefinition)
            else {}
        ),
    }


def chosen_keys(query: core.Query) -> View:
    """The keys of PARTITION BY that are another attribute for each event type, if there are any."""
    keys = []
    for place, key in enumerate(query.partition_by):
        if key.alternatives:
            ways = tuple_text(
                f"({string_literal(name)}, {tuple_text(map(_pair, types))})"
                for name, types in key.alternatives
            )
            keys.append(f"ChosenKey({place}, {string_literal(key.type.value)}, {ways})")
    return {"chosen_keys": tuple_text(keys)} if keys else {}


def _pair(event_type: tuple[str, str]) -> str:
    return tuple_text(map(string_literal, event_type))


def _sees_all_events(listing: Listing) -> bool:
    """Whether a selection must be shown the events that the query does not ask about as well."""
    match listing:
        case InWindow(all_events=sees_all) | EarliestInWindow(all_events=sees_all):
            return sees_all
        case _:
            return False


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
    needed = {a.name for a in query.order_by}
    needed |= {name for key in query.partition_by for name in key.attributes}
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


def _arena_names(view: View) -> list[str]:
    """What a straight-line or branch-free update uses of the module `arena`."""
    names = ["ARENA_FULL", "DONE", "EARLIEST", "ENTRY", "FIRED", "LOWEST", "NEXT_NODE", "ROW"]
    names += ["SHIFT", "USABLE", "reserve", *view["update_names"]]
    if view["branch_free"]:
        names += ["put_flat", "rows_that_matter", "seal"]
    else:
        names += ["next_relevant", "put"]
    if view["partitioned"]:
        names.append("PART")
    if view["fleeting"]:
        names.append("LAST")
    if view["fleeting"] or (view["pile_count"] and (view["partitioned"] or view["consumes"])):
        names.append("NEVER")
    return names


def _plan_imports(view: View) -> list[str]:
    """The constructors that the plan is written with."""
    text = repr((view["plan"], view["definition"], view["checks"]))
    names = ["Attribute", "ChosenKey", "Kind", "Label", "TextComparison", "TextCondition", "Window"]
    names += (*EXPRESSION_CONSTRUCTORS, *RELEVANT_CONSTRUCTORS)
    return [
        "CompiledQuery",
        "Plan",
        "Program",
        "module_names",
        *(n for n in names if f"{n}(" in text),
    ]
