"""What the tokens of a `.cel` file declare and bind, whether or not the text is right.

While somebody types, a text mostly has no syntax tree. The tokens still tell which streams, types
and attributes there are, and which labels the query around a place binds.
"""

from collections.abc import Iterator, Sequence

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.source import Source
from celc.parse.tokens import Token, begins_statement, keyword_of, name_text, tokenize
from celc.parse.types import declared_attributes

_CLOSING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "COLON_LBRACE": "RBRACE"}


@frozen
class Attributes:
    """A declaration with attributes: an event type of a stream, or a parameter set (stream None).
    `attributes` are names and types as written."""

    stream: str | None
    name: str
    attributes: tuple[tuple[str, str], ...]


@frozen
class Outline:
    """The declarations of a text, and its tokens."""

    tokens: tuple[Token, ...]
    streams: tuple[str, ...]
    types: tuple[Attributes, ...]
    parameters: tuple[Attributes, ...]
    aggregates: tuple[str, ...]
    functions: tuple[str, ...]
    queries: tuple[str, ...]

    def statement(self, offset: int) -> tuple[Token, ...]:
        """The tokens of the statement around a place."""
        return _statement(self.tokens, offset)

    def types_of(self, statement: Sequence[Token]) -> tuple[Attributes, ...]:
        """The event types that a query reads: those of FROM, all where it has none."""
        names = set(_from(statement))
        return tuple(one for one in self.types if not names or one.stream in names)

    def labels_of(self, statement: Sequence[Token]) -> dict[str, tuple[Attributes, ...]]:
        """The labels of a query, and the event types that each can have; types come last."""
        types = self.types_of(statement)
        found: dict[str, tuple[Attributes, ...]] = {}
        for name, bound in _bindings(statement):
            of_label = tuple(one for one in types if one.name in bound)
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), *of_label)))
        for one in types:
            if one.name not in found:
                found[one.name] = tuple(each for each in types if each.name == one.name)
        return found

    def set_of(self, statement: Sequence[Token]) -> Attributes | None:
        """The parameter set of FOR EACH."""
        for index, token in enumerate(statement[1:], start=1):
            if keyword_of(token) == "EACH" and keyword_of(statement[index - 1]) == "FOR":
                name = name_text(statement[index + 1]) if index + 1 < len(statement) else ""
                return next((one for one in self.parameters if one.name == name), None)
        return None


def outline(text: str) -> Outline:
    """The outline of a text."""
    tokens = tokens_of(text)
    streams, queries = list[str](), list[str]()
    own: dict[str, list[str]] = {"AGGREGATE": [], "FUNCTION": []}
    types, parameters = list[Attributes](), list[Attributes]()
    for index, token in enumerate(tokens[:-2]):
        keyword, following = keyword_of(token), tokens[index + 1]
        if keyword is None or not begins_statement(tokens, index):
            continue
        if keyword == "CREATE" and tokens[index + 2].type == "NAME":
            streams.append(name_text(tokens[index + 2]))
            types += _events(streams[-1], tokens, _opening(tokens, index + 3))
        elif keyword == "PARAMETERS":
            parameters.append(Attributes(None, name_text(following), _fields(tokens, index + 2)))
        elif keyword in own:
            own[keyword].append(name_text(following))
        elif keyword == "QUERY":
            queries.append(name_text(following))
    return Outline(
        tuple(tokens),
        tuple(streams),
        tuple(types),
        tuple(parameters),
        tuple(own["AGGREGATE"]),
        tuple(own["FUNCTION"]),
        tuple(queries),
    )


def tokens_of(text: str) -> list[Token]:
    """The tokens of any text, with END after them; words are names."""
    source = Source("", text)
    return tokenize(source, Diagnostics(source))


def closing_of(tokens: Sequence[Token], opening: int) -> int:
    """The place of the bracket that closes another; the end where there is none."""
    expected: list[str] = []
    for index in range(opening, len(tokens)):
        kind = tokens[index].type
        if kind in _CLOSING:
            expected.append(_CLOSING[kind])
        elif expected and kind == expected[-1]:
            expected.pop()
            if not expected:
                return index
    return len(tokens)


def _opening(tokens: Sequence[Token], index: int) -> int:
    """The place of the `{` of a stream, which may have UNCERTAIN or LASTING before it."""
    while index < len(tokens) - 1 and tokens[index].type not in ("LBRACE", "RBRACE"):
        if begins_statement(tokens, index):
            break
        index += 1
    return index


def _events(stream: str, tokens: Sequence[Token], start: int) -> Iterator[Attributes]:
    if tokens[start].type != "LBRACE":
        return
    for index in range(start + 1, min(closing_of(tokens, start), len(tokens) - 2)):
        token, before = tokens[index], tokens[index - 1]
        if keyword_of(token) == "EVENT" and before.type in ("LBRACE", "COMMA"):
            if begins_statement(tokens, index):
                return
            name = tokens[index + 1]
            if name.type == "NAME" and tokens[index + 2].type == "LBRACE":
                yield Attributes(stream, name_text(name), _fields(tokens, index + 2))


def _fields(tokens: Sequence[Token], start: int) -> tuple[tuple[str, str], ...]:
    end = min(closing_of(tokens, start), len(tokens) - 1)
    found = declared_attributes(tokens, start + 1, end)
    return tuple((name_text(name), data_type) for name, data_type in found)


def _statement(tokens: Sequence[Token], offset: int) -> tuple[Token, ...]:
    start, end = 0, len(tokens)
    for index, token in enumerate(tokens):
        # The SELECT of `QUERY name: SELECT …` does not begin another statement.
        if not begins_statement(tokens, index) or (
            keyword_of(token) == "SELECT" and index and tokens[index - 1].type == "COLON"
        ):
            continue
        if token.start <= offset:
            start = index
        else:
            end = index
            break
    return tuple(tokens[start:end])


def _from(statement: Sequence[Token]) -> Iterator[str]:
    """The names after FROM."""
    index = next((i for i, one in enumerate(statement) if keyword_of(one) == "FROM"), None)
    if index is None:
        return
    for token in statement[index + 1 :]:
        if token.type not in ("NAME", "COMMA") or keyword_of(token) in ("WHERE", "FOR"):
            return
        if token.type == "NAME":
            yield name_text(token)


def _bindings(statement: Sequence[Token]) -> Iterator[tuple[str, set[str]]]:
    """Labels that a formula gives, and the names of event types before each."""
    is_query = any(keyword_of(token) in ("SELECT", "QUERY") for token in statement[:1])
    start = next((i for i, one in enumerate(statement) if keyword_of(one) == "WHERE"), 0)
    if is_query and not start:
        return
    for index in range(start, len(statement) - 1):
        token, name = statement[index], statement[index + 1]
        is_label = keyword_of(token) in ("AS", "IN") or token.type == "ARROW"
        if is_label and name.type == "NAME" and index:
            # φ AS x, or φ[y -> x]
            end = index - (3 if token.type == "ARROW" else 1)
            yield name_text(name), set(_types_before(statement, end, start))


def _types_before(statement: Sequence[Token], index: int, start: int) -> Iterator[str]:
    """The names in the operand that ends at a place, without those of absent events."""
    closes = {"RPAR": "LPAR", "RBRACE": "LBRACE", "RSQB": "LSQB"}
    while index > start and statement[index].type in ("PLUS", "COLON_PLUS", "RBRACE", "NAME"):
        token = statement[index]
        if token.type == "NAME":
            if keyword_of(statement[index - 1]) not in ("AS", "IN"):
                yield name_text(token)
                return
            index -= 2
        elif token.type == "RBRACE":
            while index > start and statement[index].type not in ("LBRACE", "COLON_LBRACE"):
                index -= 1
            index -= 1
        else:
            index -= 1
    if statement[index].type == "NAME":
        yield name_text(statement[index])
    elif statement[index].type in closes:
        depth, end = 0, index
        while index > start:
            depth += (statement[index].type in _CLOSING.values()) - (
                statement[index].type in _CLOSING
            )
            if depth == 0:
                break
            index -= 1
        yield from _names_in(statement, index + 1, end)


def _names_in(statement: Sequence[Token], index: int, end: int) -> Iterator[str]:
    """The names in a formula, without those of conditions and of absent parts."""
    while index < end:
        token = statement[index]
        keyword = keyword_of(token)
        if keyword == "FILTER":
            # The condition goes on to the end of its parentheses.
            depth = 0
            while index < end and depth >= 0:
                index += 1
                depth += statement[index].type in _CLOSING
                depth -= statement[index].type in _CLOSING.values()
            continue
        if token.type == "BANG" or keyword == "UNLESS":
            index += 1
            if statement[index].type == "LPAR":
                index = closing_of(statement, index)
        elif token.type == "NAME" and keyword is None:
            yield name_text(token)
        index += 1
