"""Names without a meaning, or with two: of streams, types, labels, attributes, columns.

Long: one catalogue, a function for each message.
"""

from collections.abc import Collection

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.messages.wording import (
    available,
    guess,
    guessed,
    quote,
    quoted,
    type_as_value,
    unknown,
    written,
)
from celc.diagnostics.source import Span

# --- declarations ---------------------------------------------------------------------------------


def duplicate_stream(name: str, span: Span, first: Span) -> Diagnostic:
    """`CREATE STREAM S …` twice."""
    message = f"stream {quote(name)} is declared twice"
    hint = "give each stream its own name, or join the two declarations"
    related = (Related(first, "first declared here"),)
    return error("duplicate-stream", span, message, hint, related=related)


def duplicate_event_type(name: str, stream: str, span: Span, first: Span) -> Diagnostic:
    """`EVENT A …` twice in one stream."""
    message = f"event type {quote(name)} is declared twice in stream {quote(stream)}"
    hint = "give each event type of a stream its own name"
    related = (Related(first, "first declared here"),)
    return error("duplicate-event-type", span, message, hint, related=related)


def duplicate_attribute(name: str, event_type: str, span: Span, first: Span) -> Diagnostic:
    """`EVENT A { id: INT, id: LONG }`."""
    message = f"attribute {quote(name)} is declared twice in event type {quote(event_type)}"
    hint = "declare each attribute once"
    related = (Related(first, "first declared here"),)
    return error("duplicate-attribute", span, message, hint, related=related)


def repeated_primary_time(event_type: str, span: Span, first: Span) -> Diagnostic:
    """`EVENT A { a: primary_time, b: primary_time }`."""
    message = f"event type {quote(event_type)} has two attributes of the type PRIMARY_TIME"
    hint = "the others are TIMESTAMP: one attribute orders the stream"
    related = (Related(first, "the first one"),)
    fixes = (Fix(span, "TIMESTAMP"),)
    return error("repeated-primary-time", span, message, hint, related=related, fixes=fixes)


def reserved_attribute(name: str, span: Span) -> Diagnostic:
    """`EVENT A { pos: INT }`."""
    return error(
        "reserved-attribute",
        span,
        f"an attribute cannot be called {quote(name)}: celc needs a column of this name itself",
        "reserved, whatever the case: 'pos', 'type', 'stream'",
    )


def conflicting_attribute(
    name: str, types: tuple[str, str], owners: tuple[str, str], span: Span, first: Span
) -> Diagnostic:
    """`EVENT A { id: INT }` and `EVENT B { id: STRING }` in one FROM.

    `types` and `owners` are those of the first declaration and of this one.
    """
    return error(
        "conflicting-attribute",
        span,
        f"attribute {quote(name)} is {types[1]} in {quote(owners[1])} but {types[0]} in "
        f"{quote(owners[0])}, and a query reads both",
        "event types that meet in one FROM share one column for each attribute name: give "
        "both the same type, or rename one of them",
        related=(Related(first, f"declared as {types[0]} here"),),
    )


# --- streams and event types ----------------------------------------------------------------------


def no_streams(types: Collection[str], span: Span) -> Diagnostic:
    """A formula in a file without declarations; `types` are its event types."""
    message = "the file declares no stream that this query could read"
    return error("no-streams", span, message, _declaration("S", types))


def unknown_stream(
    name: str, streams: Collection[str], types: Collection[str], span: Span
) -> Diagnostic:
    """`FROM Form`, or `Form>A`; `types` are the event types of the query."""
    message = f"no stream is called {quote(name)}"
    what, more = "declared streams", () if streams else (_declaration(name, types), _FROM_TABLE)
    return unknown("unknown-stream", span, message, name, what, streams, *more)


_FROM_TABLE = (
    "celc init FILE writes that for a file of events; without it celc run finds the columns in the "
    "events, and celc.compile in schema=…"
)


def _declaration(name: str, types: Collection[str]) -> str:
    """How to declare a stream, with the event types that a query reads."""
    first, *others = types or ("A",)
    example = f"EVENT {written(first)} {{ id: INT, ts: TIMESTAMP }}"
    events = ", ".join((example, *(f"EVENT {written(one)} {{ … }}" for one in others[:3])))
    return (
        "declare it before the query, with the columns of the table: CREATE STREAM "
        f"{written(name)} {{ {events} }}"
    )


def stream_not_in_from(name: str, streams: Collection[str], span: Span) -> Diagnostic:
    """`FROM S WHERE T>A`."""
    message = f"stream {quote(name)} is not among those that this query reads"
    hint = f"add it to FROM: FROM {', '.join((*streams, name))}"
    return error("stream-not-in-from", span, message, hint)


def repeated_stream(name: str, span: Span, first: Span) -> Diagnostic:
    """`FROM S, S`."""
    message = f"stream {quote(name)} stands twice in FROM"
    hint = "name each stream once"
    related = (Related(first, "first named here"),)
    return error("repeated-stream", span, message, hint, related=related)


def unknown_event_type(
    name: str, types: Collection[str], where: str, span: Span, label: Fix | None = None
) -> Diagnostic:
    """`WHERE Q` where no stream has a type Q; `label` is the change for `q : A`."""
    meant = () if label is None else (f"a label stands after its event: {label.text}",)
    return error(
        "unknown-event-type",
        span,
        f"no event type of {where} is called {quote(name)}",
        *meant,
        *guess(name, types),
        *available("event types here", types),
        fixes=(() if label is None else (label,)) + guessed(name, types, span),
    )


def event_type_not_in_from(
    name: str, owners: Collection[str], streams: Collection[str], span: Span, declared: Span
) -> Diagnostic:
    """`FROM S WHERE B` where only another stream has a type B."""
    owner = next(iter(owners))
    return error(
        "event-type-not-in-from",
        span,
        f"event type {quote(name)} belongs to stream {quote(owner)}, which this query does not "
        "read",
        f"add it to FROM: FROM {', '.join(map(written, (*streams, owner)))}",
        related=(Related(declared, "declared here"),),
    )


# --- tables without a declaration -----------------------------------------------------------------


def several_tables(name: str, first: str, span: Span, place: Span) -> Diagnostic:
    """`FROM t, u` where neither is declared."""
    message = f"{quoted([first, name])} are not declared, and the schema is that of one table"
    hint = "declare the streams of one table with CREATE STREAM, or read one table"
    related = (Related(place, "the first one"),)
    return error("several-tables", span, message, hint, related=related)


def unknown_type_column(
    column: str, table: str, columns: Collection[str], span: Span
) -> Diagnostic:
    """`FROM t`, where the table has no column of the name that is given for its event types."""
    return error(
        "unknown-type-column",
        span,
        f"table {quote(table)} has no column {quote(column)}, which is named for its event types",
        *guess(column, columns),
        *available("its columns", columns),
    )


def no_type_column(event_type: str, table: str, columns: Collection[str], span: Span) -> Diagnostic:
    """`FROM t WHERE A`, where the table has no column `type`."""
    return error(
        "no-type-column",
        span,
        f"table {quote(table)} has no column 'type' that says which rows are {quote(event_type)}",
        "name the column of the event types: --type-column kind, or type_column='kind' in Python",
        f"without such a column each row is an event of the type {written(table)}",
        *available("its columns", columns),
    )


def types_are_no_texts(column: str, type: str, span: Span) -> Diagnostic:
    """`FROM t`, where the column of the event types has numbers."""
    message = f"column {quote(column)} is {type}, and the event types of a table are texts"
    hint = "make a column of texts of it, or name another column as that of the event types"
    return error("types-are-no-texts", span, message, hint)


def no_event_of_table(table: str, others: Collection[str], span: Span) -> Diagnostic:
    """`FROM S, t WHERE A` where S has a type A, and nothing else is named."""
    message = f"the formula names no event type of table {quote(table)}"
    hint = f"leave it out of FROM: FROM {', '.join(map(written, others))}"
    return error("no-event-of-table", span, message, hint)


def unreadable_attribute(name: str, type: str, span: Span) -> Diagnostic:
    """`x.a` where the column `a` of a table has a type that is none of the language."""
    message = f"column {quote(name)} is of the type {type}, which CEL does not read"
    return error("unreadable-attribute", span, message, "cast the column to a type that it reads")


# --- labels ---------------------------------------------------------------------------------------


def label_is_event_type(label: str, span: Span, declared: Span) -> Diagnostic:
    """`A AS B` where B is a type."""
    return error(
        "label-is-event-type",
        span,
        f"{quote(label)} is an event type, so it cannot be a label made with AS or by renaming",
        "every event type's name already labels its events: choose another name",
        related=(Related(declared, "declared as an event type here"),),
    )


def unbound_label(label: str, visible: Collection[str], is_type: bool, span: Span) -> Diagnostic:
    """`A FILTER x.id = 1`; `is_type` where the label is an event type of the query."""
    if is_type:
        reason = "is an event type that does not occur in the formula"
    else:
        reason = "is used in this filter but nothing binds it"
    return unknown(
        "unbound-label", span, f"label {quote(label)} {reason}", label, "labels bound here", visible
    )


_WHY_HIDDEN = {
    "negated": (
        "is bound only after '!', where it stands for events that must not happen",
        "only a filter inside the parentheses after '!' can name it",
    ),
    "unless": (
        "is bound only right of UNLESS, where it stands for events that must not happen",
        "only a filter inside the parentheses right of UNLESS can name it",
    ),
    "projected": (
        "is bound, but PROJECT has removed it before this point",
        "name it in the list of PROJECT, or put the condition inside its parentheses",
    ),
    "undeclared": (
        "is none: it stands for events of types that are not declared, which have no label",
        "declare the event type, with its attributes, to name its events",
    ),
    "renamed": (
        "is bound, but has been renamed before this point",
        "use the new name, or put the condition before the renaming",
    ),
    "later": (
        "is not bound to the left of this FIRST, which chooses by what has come before",
        "to judge what was chosen put the condition outside: (A ; FIRST B ; C) FILTER …",
    ),
}


def hidden_label(
    label: str, why: str, visible: Collection[str], span: Span, bound: Span
) -> Diagnostic:
    """`why` is one of negated, unless, projected, renamed, undeclared, later."""
    reason, advice = _WHY_HIDDEN[why]
    return error(
        f"label-{why}",
        span,
        f"label {quote(label)} {reason}",
        advice,
        *available("labels bound here", visible),
        related=(Related(bound, "bound here"),),
    )


def unbound_in_project(label: str, bound: Collection[str], span: Span) -> Diagnostic:
    """`PROJECT[x](A)`."""
    message = f"PROJECT cannot keep label {quote(label)}: its formula does not bind it"
    return unknown("unbound-in-project", span, message, label, "labels bound there", bound)


def unbound_in_rename(label: str, bound: Collection[str], span: Span) -> Diagnostic:
    """`A[x -> y]`."""
    return unknown(
        "unbound-in-rename",
        span,
        f"label {quote(label)} cannot be renamed: the formula before the brackets does not bind it",
        label,
        "labels bound there",
        bound,
    )


def rename_to_itself(label: str, span: Span) -> Diagnostic:
    """`(A AS x)[x -> x]`."""
    message = f"label {quote(label)} is renamed to itself"
    hint = "leave the renaming out, or give another new name"
    return error("rename-to-itself", span, message, hint)


def unbound_in_select(
    label: str, bound: Collection[str], of_labels: Collection[str], span: Span
) -> Diagnostic:
    """`SELECT x WHERE A`; `of_labels` are expressions for the attribute of that name."""
    named = f"{written(label)}"
    choices = tuple(f"{call} AS {named}" for call in of_labels)
    advice = (f"the attribute is a value of a label: {' or '.join(choices)}",) if choices else ()
    return error(
        "unbound-in-select",
        span,
        f"SELECT names label {quote(label)}, but the formula does not bind it",
        *advice,
        *guess(label, bound),
        *available("labels bound by the formula", bound),
        fixes=(*(Fix(span, choice) for choice in choices), *guessed(label, bound, span)),
    )


def partition_in_select(whose: str, span: Span, item: Fix) -> Diagnostic:
    """`SELECT user, v … PARTITION BY user` and `SELECT start_time, v`; `whose` says what has the
    column, `item` is the change that leaves it out."""
    message = f"{whose} already adds this column: SELECT must not name it"
    if not whose.startswith("PARTITION"):
        message = f"{whose} already has this column: SELECT must not name it"
    hint = "leave it out" if not item.text else f"write {item.text} in its place"
    return error("partition-in-select", span, message, hint, fixes=(item,))


def repeated_label(label: str, where: str, span: Span, first: Span) -> Diagnostic:
    """`SELECT x, x`; `where` says in what list."""
    message = f"label {quote(label)} stands twice in {where}"
    hint = "name each label once"
    related = (Related(first, "first named here"),)
    return error("repeated-label", span, message, hint, related=related)


# --- attributes -----------------------------------------------------------------------------------


_OF_CELC = {
    "POS": (
        "positions are in the answer alone, as start_pos, end_pos and pos of each event; WITHIN 3 "
        "EVENTS compares them",
    ),
    "STREAM": ("a condition asks for the stream with x IS S>A",),
}
"""What stands in place of the names that no attribute can have."""


def unknown_attribute(
    attribute: str,
    label: str,
    types: Collection[str],
    attributes: Collection[str],
    span: Span,
    of_type: tuple[str, ...] = (),
    fixes: tuple[Fix, ...] = (),
    end: str = "",
) -> Diagnostic:
    """`x.prize`; `types` are those that x can bind, `attributes` what they have. `of_type`: the
    help where the type of an event is meant, as in `x.type = 'A'`. `end`: of rows of queries, the
    attribute that is their end."""
    message = (
        f"no event type that label {quote(label)} can bind has an attribute {quote(attribute)}"
    )
    told = (*guess(attribute, attributes), *available(f"attributes of {quoted(types)}", attributes))
    if of_type or (attribute.upper() == "TYPE" and types):
        message = "the type of an event is no attribute"
        first = next(iter(types), "A")
        asked = f"a condition asks for it with {written(label)} IS {written(first)}"
        told = of_type or (asked, type_as_value(first))
    elif len(types) == 1:
        message = f"events of type {quoted(types)} have no attribute {quote(attribute)}"
    fixes = fixes or guessed(attribute, attributes, span)
    if end and attribute.lower() == "end_time":
        told = (f"the end of a row is its order column: write {written(end)}", *told[-1:])
        fixes = (Fix(span, written(end)),)
    if not of_type and attribute.upper() in _OF_CELC:
        told, fixes = (*_OF_CELC[attribute.upper()], *told[-1:]), ()
    return error("unknown-attribute", span, message, *told, fixes=fixes)


def repeated_attribute(attribute: str, where: str, span: Span, first: Span) -> Diagnostic:
    """`x[id, id]`; `where` says in what list."""
    message = f"attribute {quote(attribute)} stands twice in {where}"
    hint = "name each attribute once"
    related = (Related(first, "first named here"),)
    return error("repeated-attribute", span, message, hint, related=related)


# --- queries and columns --------------------------------------------------------------------------


def duplicate_query(name: str, first_name: str, span: Span, first: Span) -> Diagnostic:
    """`QUERY hot: …` twice, case aside."""
    if name == first_name:
        message = f"two queries are called {quote(name)}"
    else:
        message = (
            f"the names of two queries differ in case only: {quote(first_name)} and {quote(name)}"
        )
    hint = "give each query its own name"
    related = (Related(first, "first query of that name"),)
    return error("duplicate-query", span, message, hint, related=related)


def duplicate_column(
    name: str, what: str, other: str, other_what: str, span: Span, first: Span | None
) -> Diagnostic:
    """`SELECT x, X`: two columns that Spark could not tell apart.

    `what` says of each what it is; `first` is None for the columns that every output has.
    """
    same = "the same name as" if name == other else "almost the same name as"
    return error(
        "duplicate-column",
        span,
        f"{what} {quote(name)} would be an output column with {same} {other_what} {quote(other)}",
        "names of columns must differ in more than case and Unicode form: rename one",
        related=() if first is None else (Related(first, f"{other_what} {quote(other)}"),),
    )


# --- SOME and EVERY -------------------------------------------------------------------------------


def quantified_twice(word: str, label: str, span: Span) -> Diagnostic:
    """`SOME x, x: x.a > 3`."""
    message = f"{word} names {quote(label)} twice"
    return error("quantified-twice", span, message, "name each label once, or leave one out")


def quantified_unnamed(word: str, label: str, inside: bool, span: Span) -> Diagnostic:
    """`SOME x: y.a > 3`, or `SOME x: COUNT(x) > 3` (`inside`)."""
    quoted_one = quote(label)
    if inside:
        message = (
            f"the condition of {word} names {quoted_one} only inside a function of all its events"
        )
        hint = f"leave {word} {written(label)}: out, or compare an attribute: {written(label)}.a"
    else:
        message = f"the condition of {word} does not name {quoted_one}"
        hint = (
            f"name it there, as in {word} {written(label)}: {written(label)}.a > 3, or leave it out"
        )
    return error("quantified-unnamed", span, message, hint)
