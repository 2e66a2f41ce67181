"""Queries and matches for people, in a shell and in a notebook.

Matches stay a pyarrow Table, because all other tools read one. Rejected: a wrapper with its own
`_repr_html_`, which would be in the way of those tools. So a function shows them:
`as_html(matches)`. Likewise a function gives whole numbers the type that Python and pandas compute
with: a column that has it for small numbers alone would differ from run to run.

Texts of events and names of columns may contain anything. In HTML all of them are escaped. In a
shell, a name with control characters is shown as Python quotes it.
"""

import textwrap
from collections.abc import Iterable
from html import escape
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.shown import shown
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Plan, Window
from celc_runtime.plan.schemas import input_schema, output_schema

_WIDTH = 100
_MOST_LINES = 4
_MOST_QUERIES = 12
_MOST_EVENTS = 50
_TIME_UNITS = (
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1_000),
    ("MICROSECOND", 1),
)


class Html(str):
    """A text of HTML that a notebook shows as HTML, and IPython in a terminal as another text."""

    __slots__ = ("_plain",)
    _plain: str

    def __new__(cls, html: str, plain: str = "") -> "Html":
        self = super().__new__(cls, html)
        self._plain = plain
        return self

    def _repr_html_(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text that IPython shows in a terminal, and keeps beside the HTML in a notebook.

        Without this method it would show the tags.
        """
        printer.text(self._plain)


# --- queries --------------------------------------------------------------------------------------


def described(plan: Plan) -> list[tuple[str, str]]:
    """A query as pairs of a word and a text of one line: reads, order, window, returns, …"""
    read = [f"{_name(name)} {plan.source.input_type(name)}" for name in input_schema(plan).names]
    labels = {label.name for label in plan.answer.items if not isinstance(label, Computed)}
    labels = set() if plan.answer.totals is not None else labels
    returned = [
        f"{_name(name)}[]" if name in labels else _name(name) for name in output_schema(plan).names
    ]
    order = ", ".join(map(_name, plan.source.order_by)) or "as the events come"
    if plan.source.tiebreak:
        order += f", then {', '.join(map(_name, plan.source.tiebreak))}"
    if plan.source.ties is not None:
        order += "; equal ones are simultaneous"
    lines = [("reads", ", ".join(read) or "no column"), ("order", order)]
    if plan.source.uncertain is not None:
        times = f"from {_name(plan.source.uncertain.low)} to {_name(plan.source.uncertain.high)}"
        lines.append(("uncertain time", times))
    if plan.source.reads:
        # The runtime makes a table with its columns from these rows.
        streams = [name for name in plan.source.streams if name not in plan.source.reads]
        rows = f"the rows of {', '.join(map(_name, plan.source.reads))}"
        lines[0] = "reads", ", ".join([rows, *(f"stream {_name(name)}" for name in streams)])
    if plan.source.partition_by:
        lines.append(("partitions", ", ".join(map(_name, plan.source.key_columns))))
    if plan.matching.window is not None:
        lines.append(("window", _window(plan, plan.matching.window)))
    if plan.matching.consume_by != "NONE":
        lines.append(("consumes", f"by {plan.matching.consume_by}"))
    chosen = plan.choice.per_start
    limit = plan.choice.limit if chosen is None else chosen.limit
    if chosen is not None:
        lines.append(("of each start", str(chosen)))
    if limit is not None:
        lines.append(("limit", f"{limit:,} for each event that ends a match"))
    if plan.answer.totals is not None:
        per = plan.answer.totals.per
        group = f"span of {per:,} microseconds" if isinstance(per, int) else per.lower()
        lines.append(("totals", f"of the matches of each {group}"))
    elif plan.answer.collapsed:
        lines.append(("unions", "of the matches of each end"))
    return [*lines, ("returns", ", ".join(returned))]


def _window(plan: Plan, window: Window) -> str:
    if window.unit == "EVENTS":
        return f"{int(window.size):,} EVENTS"
    on = f"[{_name(plan.window_attribute or '')}]"
    if window.unit != "MICROSECONDS":
        return f"{window.size:,} {on}"
    unit, size = next((u, s) for u, s in _TIME_UNITS if window.size % s == 0)
    count = int(window.size) // size
    return f"{count:,} {unit}{'' if count == 1 else 'S'} {on}"


def _name(name: str) -> str:
    return name if name.isprintable() else repr(name)


def query_text(plan: Plan) -> str:
    """A query in a few lines for a shell: what it reads, in which order, and what it returns."""
    lines = [f"query {_name(plan.name)}"]
    for word, text in described(plan):
        indent = " " * 13
        wrapped = textwrap.wrap(text, _WIDTH - len(indent), break_long_words=False)
        if len(wrapped) > _MOST_LINES:
            wrapped = [*wrapped[: _MOST_LINES - 1], "…"]
        lines.append(f"  {word:<10} " + f"\n{indent}".join(wrapped))
    return "\n".join(lines)


def file_text(plans: Iterable[Plan]) -> str:
    """The queries of a file for a shell: a single one in full, several by name."""
    plans = list(plans)
    if len(plans) == 1:
        return query_text(plans[0])
    lines = [f"{len(plans)} queries"]
    for plan in plans[:_MOST_QUERIES]:
        returned = ", ".join(map(_name, output_schema(plan).names))
        lines.append(textwrap.shorten(f"{_name(plan.name)}: {returned}", _WIDTH, placeholder=" …"))
    if len(plans) > _MOST_QUERIES:
        lines.append(f"… and {len(plans) - _MOST_QUERIES:,} more")
    return "\n  ".join(lines)


def queries_html(plans: Iterable[Plan], text: str) -> Html:
    """The queries of a file for a notebook, with the text of the file, which can be unfolded."""
    plans = list(plans)
    parts = []
    for plan in plans:
        rows = "".join(
            f"<tr><th style='text-align:left'>{word}</th>"
            f"<td style='text-align:left'>{escape(line)}</td></tr>"
            for word, line in described(plan)
        )
        parts.append(f"<b>query {escape(_name(plan.name))}</b><table>{rows}</table>")
    parts.append(f"<details><summary>text</summary><pre>{escape(text)}</pre></details>")
    return Html(f"<div>{''.join(parts)}</div>", file_text(plans))


# --- matches --------------------------------------------------------------------------------------


def as_html(matches: pa.Table | pa.RecordBatch, *, rows: int = 20, more: bool = False) -> Html:
    """Matches as a table of HTML, which a notebook shows at the end of a cell.

    rows: the most matches that are shown; the text below the table gives their number. more: these
    are the first of matches that nobody has counted, and the text says so. Labels show
    their events one below the other, each with its position and attributes. Everything from the
    events is escaped. Raises TypeError for a value that is not an Arrow table.
    """
    if not isinstance(matches, pa.Table | pa.RecordBatch):
        raise TypeError(
            f"as_html shows what match_table returns, a pyarrow Table, and no "
            f"{type(matches).__name__}"
        )
    if type(rows) is not int or rows < 0:
        raise ValueError(f"rows must be a whole number from 0, not {rows!r}")
    first = matches.slice(0, rows)
    names = matches.schema.names
    cells = [[_lines(column[row]) for column in first.columns] for row in range(first.num_rows)]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = ""
    for row in cells:
        shown_cells = ("<br>".join(map(escape, lines)) for lines in row)
        body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in shown_cells)}</tr>"
    count = matches.num_rows
    told = f"{count:,} match{'' if count == 1 else 'es'}"
    if more:
        told = f"the first {first.num_rows:,} matches; there are more"
    elif count > first.num_rows:
        told += f", the first {first.num_rows:,} shown"
    return Html(
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{told}</p></div>",
        _plain_table([names, *([", ".join(lines) for lines in row] for row in cells)], told),
    )


def _plain_table(rows: list[list[str]], told: str) -> str:
    """Rows, of which the first has the names, as lines of text with a column below each other."""
    cells = [[_cut(_name(one)) for one in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([*lines, told])


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH // 2 else f"{text[: _WIDTH // 2 - 2]} …"


def _lines(value: pa.Scalar) -> list[str]:
    """The lines of a cell: of a label its events."""
    if not value.is_valid or not pa.types.is_list(value.type):
        return [_shown(value)]
    show = _shown_event if pa.types.is_struct(value.type.value_type) else _shown
    items = [show(value.values[place]) for place in range(min(len(value.values), _MOST_EVENTS))]
    if len(value.values) > _MOST_EVENTS:
        items.append(f"… and {len(value.values) - _MOST_EVENTS:,} more")
    return items


def _shown_event(value: pa.Scalar) -> str:
    return " ".join(
        f"#{field}" if name == "pos" else f"{name}={_shown(field)}" for name, field in value.items()
    )


def _shown(value: pa.Scalar) -> str:
    return value.as_py() if value.is_valid and pa.types.is_string(value.type) else shown(value)


# --- whole numbers --------------------------------------------------------------------------------


def with_integers(matches: pa.Table) -> pa.Table:
    """A table whose columns of DECIMAL(p, 0), such as the counts of TOTAL, are int64 where all
    their values fit: `to_pylist` gives int, and pandas computes with them. Other columns stay."""
    for place, field in enumerate(matches.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                numbers = matches.column(place).cast(pa.int64())
            except pa.ArrowInvalid:
                continue  # a number needs more than 64 bits
            matches = matches.set_column(place, field.with_type(pa.int64()), numbers)
    return matches
