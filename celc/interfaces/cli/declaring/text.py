"""The shape of a table → CREATE STREAM and a first query, as `celc fmt` writes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from celc.core.declarations import event_text, quoted, spelled
from celc.diagnostics.messages.wording import quote
from celc.diagnostics.source import Source, visible
from celc.editor.formatting.text import formatted
from celc.editor.languages import CEL
from celc.interfaces.cli.declaring.samples import Sample
from celc.interfaces.cli.declaring.shape import Order, Shape, ShownEvent

_MOST_TOLD = 12  # columns that are left out, and named


def declaration(sample: Sample, shape: Shape, name: str, hints: Iterable[str]) -> str:
    """The text; `hints` are lines of the comment at its top."""
    head = "".join(f"-- {_in_one_line(line)}\n" for line in (*_head(sample, shape), *hints))
    text = f"{head}CREATE STREAM {spelled(name)} {{\n{_events(shape)}}}\n\n{_query(shape, name)}"
    return formatted(Source(f"{name}.cel", text), CEL)


def _in_one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _head(sample: Sample, shape: Shape) -> Iterator[str]:
    yield f"Written by celc init from {sample.rows}."
    if not sample.is_whole:
        yield "Rows that were not read may have other event types, other types of values, and NULL."
    if shape.types is not None and shape.types != "type":
        yield f"Event types are in the column {quote(shape.types)}."
    for one in shape.like_types[:1]:
        yield "No column is called 'type', so each row is an event of one type."
        yield f"{quote(one)} looks like a column of event types: --type-column {shlex.quote(one)}"
    if shape.untyped:
        yield f"Rows without an event type, which --on-null-type skip leaves out: {shape.untyped:,}"
    if shape.order is None:
        yield "No column seems to order the events: they come in the order of the rows."
    else:
        yield f"{quote(shape.order.name)} seems to order the events."
    for one, forms in sample.forms.items():
        yield (
            f"{quote(one)} has times, which are texts here: --time-format "
            f"{' or '.join(repr(form) for form in forms[:2])} reads them."
        )
    left_out = [f"{quote(one)} ({why})" for one, why in shape.left_out.items()]
    if left_out:
        more = len(left_out) - _MOST_TOLD
        yield f"Left out: {', '.join(left_out[:_MOST_TOLD])}" + (
            f" and {more:,} more" if more > 0 else ""
        )


def _events(shape: Shape) -> str:
    """The event types, the rare ones as comments before the one that stands for them."""
    *before, last = [_event(one, shape) for one in shape.events]
    texts = [*(f"{text}, {told}\n" for text, told in before)]
    if not shape.rare:
        return "".join((*texts, f"{last[0]} {last[1]}\n"))
    texts.append(f"{last[0]}, {last[1]}\n")
    for one in shape.rare:
        text, told = _event(one, shape)
        texts += [f"  -- {line.strip()}\n" for line in f"{text}, {told}".splitlines()]
    if shape.others:
        texts.append(f"  -- {shape.others:,} more event types are rarer\n")
    return "".join((*texts, f"{event_text('OTHER', ())}\n"))


def _event(one: ShownEvent, shape: Shape) -> tuple[str, str]:
    """The declaration of an event type, and a comment with its number of rows."""
    order = shape.order
    attributes = (
        (name, "PRIMARY_TIME" if order is not None and is_primary(order, name) else type)
        for name, type in one.attributes
    )
    return event_text(one.name, attributes), f"-- {one.rows:,} row{'' if one.rows == 1 else 's'}"


def is_primary(order: Order, name: str) -> bool:
    """Whether an attribute is declared as the time that orders its stream."""
    return order.name == name and order.type == "TIMESTAMP"


def _query(shape: Shape, name: str) -> str:
    """A query that any table has an answer to: an event and the next one of another type."""
    first, second = (shape.events * 2)[:2]
    labels = [_free(label, shape) for label in ("x", "y")]
    formula = " ; ".join(
        f"{spelled(one.name)} AS {label}"
        for one, label in zip((first, second), labels, strict=True)
    )
    order = shape.order
    if order is None:
        window = "100 EVENTS"
    elif is_primary(order, order.name):
        window = order.window
    else:
        attribute = order.name if order.name.isidentifier() else quoted(order.name)
        window = f"{order.window} [{attribute}]"
    return f"SELECT FIRST *\nFROM {spelled(name)}\nWHERE {formula}\nWITHIN {window}\n"


def _free(label: str, shape: Shape) -> str:
    """A label that no event type is called like."""
    taken = {one.name for one in (*shape.events, *shape.rare)}
    while label in taken:
        label += "_"
    return label
