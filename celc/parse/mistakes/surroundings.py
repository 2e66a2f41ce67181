"""The names that a query declares and binds around a syntax error, for messages to offer.

There is no tree where a syntax error is, so all this is read off the tokens. It serves only for
advice: doubtful names are left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from celc.parse.mistakes.place import CLAUSES, CLOSERS, Place
from celc.parse.tables import grammar
from celc.parse.tokens import keyword_of, name_text, word_of
from celc.parse.types import declared_attributes, end_of_type

_TIMES = ("TIMESTAMP", "DATE")
NUMBERS = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE")
_ENDS_FORMULA = frozenset(CLAUSES) | {"PER", "HAVING", "GROUP", "ORDER"}


@dataclass(slots=True)
class Declared:
    """The streams of a file: the event types of each, and the attributes of these."""

    streams: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)

    def of_type(self, attribute: str) -> str | None:
        """The data type of an attribute, None where no event type has it."""
        found = (attributes.get(attribute) for attributes in self.types.values())
        return next((data_type for data_type in found if data_type), None)

    def shared_attributes(self) -> list[str]:
        """The attributes that every event type has."""
        every = list(self.types.values())
        return [name for name in (every[0] if every else {}) if all(name in one for one in every)]

    def time_attribute(self) -> str | None:
        """An attribute of all event types that holds a time."""
        shared = self.shared_attributes()
        return next((name for name in shared if self.of_type(name) in _TIMES), None)


def declared(place: Place) -> Declared:
    """The declarations of the streams in FROM, as far as they are right; of all without FROM."""
    found = _all_declared(place)
    read = [name for name in _from_names(place) if name in found.streams]
    if not read:
        return found
    types = {name: found.types[name] for stream in read for name in found.streams[stream]}
    return Declared(found.streams, types)


def _from_names(place: Place) -> list[str]:
    """The names after FROM in the statement, also where they come after the error."""
    tokens, end = place.tokens, place.statement_end()
    at = next(
        (i for i in range(place.statement_start, end) if keyword_of(tokens[i]) == "FROM"), end
    )
    names = []
    while at + 1 < end and tokens[at + 1].type in ("NAME", "ATTRIBUTE"):
        names.append(name_text(tokens[at + 1]))
        if tokens[at + 2].type != "COMMA":
            break
        at += 2
    return names


def _all_declared(place: Place) -> Declared:
    found, tokens, at = Declared(), place.tokens, 0
    while keyword_of(tokens[at]) == "CREATE" and at + 3 < len(tokens):
        stream, end = name_text(tokens[at + 2]), place.closer(at + 3)
        if tokens[at + 3].type != "LBRACE" or end is None:
            break
        events = found.streams.setdefault(stream, [])
        for index in range(at + 4, end):
            if keyword_of(tokens[index]) == "EVENT" and tokens[index + 2].type == "LBRACE":
                name = name_text(tokens[index + 1])
                events.append(name)
                found.types[name] = dict(_attributes(place, index + 3, end))
        at = end + 1
    return found


def _attributes(place: Place, start: int, end: int) -> Iterator[tuple[str, str]]:
    closing = (i for i in range(start, end) if place.tokens[i].type == "RBRACE")
    for name, data_type in declared_attributes(place.tokens, start, next(closing, end)):
        yield name_text(name), data_type


def columns(place: Place, opener: int, closer: int) -> list[str]:
    """The attributes, as they are declared, for the columns of SQL between two parentheses."""
    found, index, tokens = list[str](), opener + 1, place.tokens
    while index < closer:
        name = tokens[index]
        end = index + 1
        if name.type in ("NAME", "ATTRIBUTE", "TEXT") and tokens[index + 1].type == "NAME":
            end = end_of_type(tokens, index + 1, closer)
            if word_of(name) not in (*_OF_CELC, *_CONSTRAINTS):
                found.append(f"{name.text}: {place.raw(index + 1, end).upper()}")
        depth = 0
        while end < closer and (depth or tokens[end].type != "COMMA"):
            depth += (tokens[end].type in CLOSERS) - (tokens[end].type in CLOSERS.values())
            end += 1
        index = end + 1
    return found


_OF_CELC = ("TYPE", "POS", "STREAM")  # no attribute is called so
_CONSTRAINTS = ("PRIMARY", "UNIQUE", "CONSTRAINT", "FOREIGN", "CHECK", "WATERMARK", "INDEX", "KEY")


def types_in_formulas(place: Place, start: int) -> list[str]:
    """The names that stand for events behind WHERE, as far as the tokens show."""
    found, tokens, inside = dict[str, None](), place.tokens, False
    for index in range(start, len(tokens) - 1):
        token, before, after = tokens[index], tokens[index - 1], tokens[index + 1]
        keyword = keyword_of(token)
        inside = keyword == "WHERE" or (inside and keyword not in (*CLAUSES, "FILTER"))
        is_name = token.type == "NAME" and keyword not in grammar().reserved
        between = ("SEMICOLON", "COLON", "LPAR", "BANG")
        begins = before.type in between or keyword_of(before) in ("WHERE", "OR", "AND", "ALL")
        if inside and is_name and begins and after.type not in ("DOT", "LPAR"):
            found[token.text] = None
    return list(found)


# --- the statement --------------------------------------------------------------------------------


def formula_range(place: Place) -> tuple[int, int] | None:
    """The tokens of the formula of the statement, also after the error."""
    end = place.statement_end()
    where = next(
        (i for i in range(place.statement_start, end) if keyword_of(place.tokens[i]) == "WHERE"),
        None,
    )
    start = place.statement_start if where is None else where + 1
    depth = 0
    for index in range(start, end):
        token = place.tokens[index]
        depth += (token.type in CLOSERS) - (token.type in CLOSERS.values())
        if index > start and depth <= 0 and _ends_formula(place, index):
            return start, index
    return (start, end) if start < end else None


def _ends_formula(place: Place, index: int) -> bool:
    token = place.tokens[index]
    return token.type in ("NAME", "PER", "HAVING", *CLAUSES) and token.text.upper() in _ENDS_FORMULA


def labels(place: Place) -> dict[str, str | None]:
    """The labels that the formula of the statement binds, and the event type of each if plain.

    Those made with AS first, then the types that have no other label.
    """
    bounds = formula_range(place)
    if bounds is None:
        return {}
    made: dict[str, str | None] = {}
    plain: dict[str, str | None] = {}
    types, tokens = declared(place).types, place.tokens
    for index in range(*bounds):
        token = tokens[index]
        keyword = keyword_of(token)
        if keyword == "FILTER":
            break
        if keyword == "AS" and tokens[index + 1].type in ("NAME", "ATTRIBUTE"):
            before = name_text(tokens[index - 1])
            plain.pop(before, None)
            made[name_text(tokens[index + 1])] = before if before in types else None
        elif token.type == "NAME" and name_text(token) in types:
            plain.setdefault(name_text(token), name_text(token))
    return made | plain


def labelled(
    place: Place, start: int, end: int, known: Mapping[str, str | None] | None = None
) -> str | None:
    """A condition with a label before each attribute that has none; None where that fails.

    `known` are the labels, if they are not those of the statement.
    """
    types, texts = declared(place).types, dict[int, str]()
    among = labels(place) if known is None else known
    for index in range(start, end):
        token, before, after = (place.tokens[i] for i in (index, index - 1, index + 1))
        if token.type not in ("NAME", "ATTRIBUTE") or keyword_of(token) in grammar().reserved:
            continue
        if before.type == "DOT" or after.type in ("DOT", "LPAR", "LSQB", "TEXT"):
            continue
        name = name_text(token)
        if name in among:
            continue
        having = [one for one, kind in among.items() if name in types.get(kind or "", {})]
        if not having:
            return None
        texts[index] = f"{having[0]}.{token.text}"
    return place.changed(start, end, texts)


def new_label(place: Place, event_type: str) -> str:
    """A label for events of a type that nothing else is called."""
    taken = {token.text.casefold() for token in place.tokens}
    letter = event_type[:1].lower() if event_type.isascii() else "x"
    return next(
        name for name in (letter, "x", *(f"x{n}" for n in range(2, 9_999))) if name not in taken
    )


def usual_value(place: Place, attribute: str) -> str:
    """A comparison that an attribute of this name allows, such as `> 0`."""
    match declared(place).of_type(attribute):
        case "BOOLEAN":
            return "= TRUE"
        case "STRING":
            return "= 'text'"
        case data_type if data_type in NUMBERS:
            return "> 0"
        case _:
            return "IS NOT NULL"


def is_simple(place: Place, start: int, end: int) -> bool:
    """Whether a formula is one operand: a name, or all of it in parentheses."""
    if end - start == 1:
        return True
    return place.tokens[start].type == "LPAR" and place.closer(start) == end - 1


def without(place: Place, start: int, end: int, absent: str) -> tuple[str, str]:
    """A formula in which something is absent, and how the help says it: inside the match, or after
    it where the match is one event, which has no inside."""
    kinds = {token.type for token in place.tokens[start:end]}
    before = in_parentheses(place, start, end)
    if kinds - {"NAME", "AS", "OR", "LPAR", "RPAR", "ATTRIBUTE"}:
        return f"{before} UNLESS {absent}", "for none inside the match write"
    statement = place.tokens[place.statement_start : place.statement_end()]
    length, time = "", declared(place).time_attribute()
    if not any(keyword_of(token) == "WITHIN" for token in statement):
        length = f" FOR 10 MINUTES [{time}]" if time else " FOR 10 EVENTS"
    return f"{before} ; !{absent}{length}", "for none after it write"


def in_parentheses(place: Place, start: int, end: int) -> str:
    """The text of a formula, in parentheses unless it is one operand."""
    text = place.raw(start, end)
    return text if is_simple(place, start, end) else f"({text})"
