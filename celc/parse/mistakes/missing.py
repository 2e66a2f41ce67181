"""Syntax errors where something is missing: a word, a name, an attribute, a value, a formula.

Each function looks at the place where the parser stopped. It returns its message, or None if the
mistake there is another one.
"""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import COMPARISONS, Place, described
from celc.parse.mistakes.surroundings import declared, labels, new_label, usual_value
from celc.parse.mistakes.tokens import shortened
from celc.parse.tables import END, grammar


def missing_by(place: Place) -> Diagnostic | None:
    """`PARTITION user`, `CONSUME ANY`, `PARTITION BY (user)` and `PARTITION BY v.user`."""
    found, before = place.found, place.before
    if place.accepted == {"BY"} and before in ("PARTITION", "CONSUME"):
        if place.at_end:
            return None
        mended = f"{before} BY"
        message = f"BY is missing after {before}"
        hint = f"write {mended} {shortened(found.text)}"
        fixes = [Fix(place.previous.span, mended)]
        return error("missing-by", found.span, message, hint, fixes=fixes)
    if before == "BY" and found.type == "LPAR" and place.accepts("ATTRIBUTE"):
        closer = place.closer(place.index)
        names = place.raw(place.index + 1, closer) if closer else ""
        return error(
            "misplaced-sign",
            found.span,
            "the attributes of PARTITION BY stand without parentheses",
            *([f"write PARTITION BY {shortened(names)}"] if names else ["leave the ( out"]),
            fixes=[Fix(place.span(place.index, closer + 1), names)] if closer and names else [],
        )
    is_labelled = before == "ATTRIBUTE" and place.token(place.index - 2).type == "DOT"
    if found.type == "EQUAL" and is_labelled and place.last("PARTITION") is not None:
        keys, end = [place.previous.text], place.index
        while place.token(end).type == "EQUAL" and place.token(end + 2).type == "DOT":
            keys.append(place.token(end + 3).text)
            end += 4
        name, span = _one_key(place, list(dict.fromkeys(keys))), place.span(place.index - 3, end)
        return error(
            "misplaced-sign",
            span,
            "PARTITION BY takes attributes of all events, without labels",
            f"write {name}" if name else "compare two attributes in a condition: FILTER x.a = y.b",
            fixes=[Fix(span, name)] if name else [],
        )
    return None


def _one_key(place: Place, names: list[str]) -> str | None:
    """The key to write instead of `v.user = c.buyer`.

    One name if both sides have the same, `[user, buyer]` if each event type declares exactly one of
    the two, else None.
    """
    if len(names) == 1:
        return names[0]
    types = declared(place).types.values()
    one_each = all(sum(name in attributes for name in names) == 1 for attributes in types)
    return f"[{', '.join(names)}]" if one_each else None


def missing_word(place: Place) -> Diagnostic | None:
    """A name, an attribute or a value that is missing: `PARTITION BY`, `FROM WHERE`, `AS ;`."""
    found, before, known = place.found, place.before, declared(place)
    at = Span(found.start, found.start) if not place.at_end or found.type != END else found.span
    if before == "BY" and place.accepts("ATTRIBUTE") and place.at_end:
        names = known.shared_attributes()
        what, example = "an attribute", names[0] if names else "id"
        return _missing(place, at, what, f"PARTITION BY {example}", example)
    if before == "BY" and place.accepts("NONE", "ANY", "PARTITION"):
        policy = "PARTITION" if place.last("PARTITION") is not None else "ANY"
        behind = Span(place.previous.end, place.previous.end)
        fixes = [Fix(behind, f" {policy}") if place.at_end else Fix(found.span, policy)]
        message = "CONSUME BY needs NONE, ANY or PARTITION"
        hints = ["write CONSUME BY ANY, or CONSUME BY PARTITION for each partition on its own"]
        return error("missing-word", found.span, message, *hints, fixes=fixes)
    if before == "FROM" and place.accepts("NAME") and place.at_end:
        example = next(iter(known.streams), "S")
        return _missing(place, at, "the name of a stream", f"FROM {example}", f"{example} ")
    if before in ("AS", "IN") and place.accepts("NAME") and found.type == "TEXT":
        name = found.text[1:-1]
        if name.isidentifier():
            message = "a label is a name, not a text"
            fixes = [Fix(found.span, name)]
            return error("missing-word", found.span, message, f"write {name}", fixes=fixes)
    if before == "DOT" and place.accepts("ATTRIBUTE") and found.type != "NAME":
        return _attribute_after_dot(place)
    if before == "AS" and place.accepts("NAME") and not place.is_reserved():
        example = new_label(place, place.tokens[place.index - 2].text)
        return _missing(place, at, "a label", f"AS {example}", f"{example} ")
    return None


def _attribute_after_dot(place: Place) -> Diagnostic | None:
    """`x. > 3`: the label has no attribute behind its dot."""
    label = place.tokens[place.index - 2].text
    event_type = labels(place).get(label) or label
    example = next(iter(declared(place).types.get(event_type, {})), "")
    if not example:
        return None
    message = "an attribute is missing after '.'"
    hint = f"write it there, as in {label}.{example}"
    return error("missing-word", place.found.span, message, hint)


def _missing(place: Place, at: Span, what: str, text: str, word: str) -> Diagnostic:
    gap = "" if place.source.text[at.start - 1 : at.start].isspace() else " "
    message = f"{what} is missing after {described(place.previous)}"
    hint = f"write it there, as in {text}"
    return error("missing-word", place.found.span, message, hint, fixes=[Fix(at, f"{gap}{word}")])


def missing_value(place: Place) -> Diagnostic | None:
    """`FILTER` and `x.price >` with nothing after them."""
    ends = place.at_end or place.found.type in ("RPAR", "RSQB", "AND", "OR")
    if not place.wants_value or not ends or place.following.type == "DOT":
        return None
    if place.before == "FILTER":
        bound = next(iter(labels(place)), "x")
        kind = labels(place).get(bound) or ""
        attribute = next(iter(declared(place).types.get(kind, {})), "a")
        example = f"{bound}.{attribute} {usual_value(place, attribute)}"
        return _missing(place, place.found.span, "a condition", f"FILTER {example}", example)
    if place.before in COMPARISONS and place.tokens[place.index - 2].type == "ATTRIBUTE":
        data_type = declared(place).of_type(place.tokens[place.index - 2].text)
        example = _VALUES.get(data_type or "", "10")
        text = f"{place.text(place.index - 2, place.index)} {example}"
        at = Span(place.previous.end, place.previous.end)
        return _missing(place, at, "a value", text, example)
    return None


_VALUES = {
    "STRING": "'text'",
    "BOOLEAN": "TRUE",
    "TIMESTAMP": "TIMESTAMP '2024-01-31 12:00:00'",
    "DATE": "DATE '2024-01-31'",
    "INTERVAL": "5 MINUTES",
}
"""An example of a value of each type; for numbers it is 10."""


# --- formulas ---


def missing_where(place: Place) -> Diagnostic | None:
    """A query that ends before its formula."""
    if not place.accepts("WHERE") or not place.at_end:
        return None
    message = "the query has no WHERE"
    hint = f"WHERE and a formula say which events make a match: WHERE {example_formula(place)}"
    fixes = _insertion(place, f"WHERE {example_formula(place)}")
    return error("missing-where", place.found.span, message, hint, fixes=fixes)


def example_formula(place: Place) -> str:
    """A formula with event types of the file, such as `A ; B`."""
    reserved = grammar().reserved
    types = [
        f"`{name}`" if name.upper() in reserved else written(name)
        for name in list(declared(place).types)[:2]
    ]
    return " ; ".join(types) if types else "A ; B"


def _insertion(place: Place, text: str) -> list[Fix]:
    end = place.previous.end
    return [Fix(Span(end, end), f" {text}")] if declared(place).types else []
