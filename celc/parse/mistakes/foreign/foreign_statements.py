"""Statements and streams as other languages write them, and the text that says the same here.

Each function returns its message about a place, or None where its case does not apply.
"""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.mistakes.place import Place
from celc.parse.mistakes.surroundings import columns, declared, types_in_formulas
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END
from celc.parse.tokens import begins_statement, keyword_of, name_text, word_of


def match_recognize(place: Place) -> Diagnostic | None:
    """`MATCH_RECOGNIZE (…)` and `PATTERN (…)`."""
    words = ("MATCH_RECOGNIZE", "PATTERN", "MATCHES")
    if word_of(place.found) not in words or place.following.type != "LPAR":
        return None
    start = place.index
    end = (place.closer(start + 1) or place.statement_end() - 1) + 1
    mended = _from_pattern(place, start, end)
    more = "conditions of DEFINE follow the formula, after FILTER"
    whole = 'celc runs MATCH_RECOGNIZE itself from a .sql file, and with dialect="match_recognize"'
    return error(
        "foreign-word",
        place.found.span,
        f"there is no {place.found.text.upper()}: a pattern is a formula, and stands after WHERE",
        *([f"write {offered(mended)}", more, whole] if mended else [more, whole]),
        fixes=[Fix(place.span(start, end), mended)] if mended else [],
    )


def _from_pattern(place: Place, start: int, end: int) -> str | None:
    """A formula for `PATTERN (A B+)`, with event types of the file for its variables."""
    tokens, by = place.tokens, ""
    at = next((i for i in range(start, end) if word_of(tokens[i]) == "PATTERN"), None)
    if at is None or tokens[at + 1].type != "LPAR":
        return None
    for index in range(start, at):
        if keyword_of(tokens[index]) == "PARTITION" and tokens[index + 2].type == "NAME":
            by = f" PARTITION BY {tokens[index + 2].text}"
    types, parts = list(declared(place).types), list[str]()
    if not types:
        return None
    for token in tokens[at + 2 : place.closer(at + 1)]:
        if token.type == "PLUS" and parts:
            parts[-1] = f"({parts[-1]}):+" if " " in parts[-1] else f"{parts[-1]}:+"
        elif token.type != "NAME":
            return None
        elif name_text(token) in types:
            parts.append(token.text)
        else:
            parts.append(f"{types[len(parts) % len(types)]} AS {token.text}")
    return f"WHERE {' : '.join(parts)}{by}" if parts else None


def after_stream(place: Place) -> Diagnostic | None:
    """`FROM S AS s`, `FROM S s`, `FROM S JOIN T` and `FROM S View ; Cart`."""
    if not place.accepts("COMMA", "WHERE") or place.last("FROM") is None or place.at_end:
        return None
    found, following = place.found, place.following
    if found.type == "SEMICOLON":
        message, fixes = "';' cannot stand between clauses", [Fix(found.span, "")]
        return error("misplaced-sign", found.span, message, "leave the ; out", fixes=fixes)
    if word_of(found) in ("JOIN", "INNER", "CROSS", "UNION"):
        return _join(place)
    if name_text(found) in declared(place).types and following.type not in ("COMMA", "WHERE"):
        return error(
            "missing-where",
            found.span,
            "WHERE is missing before the formula",
            f"write WHERE {place.text(place.index, place.formula_end())}",
            fixes=[Fix(found.span, f"WHERE {found.text}")],
        )
    if word_of(found) == "MATCH":
        return error(
            "foreign-word",
            found.span,
            "there is no MATCH: the formula stands after WHERE",
            "write WHERE",
            fixes=[Fix(found.span, "WHERE")],
        )
    return _alias(place)


def _alias(place: Place) -> Diagnostic | None:
    """`FROM S AS s` and `FROM S s`."""
    alias = place.index + 1 if place.found.type == "AS" else place.index
    token, after = place.token(alias), place.token(alias + 1)
    if token.type != "NAME" or keyword_of(token) is not None:
        return None
    if keyword_of(after) != "WHERE" and after.type != "COMMA":
        return None
    span = place.span(place.index, alias + 1)
    message = "a stream has no other name than its own"
    hint = f"leave {place.text(place.index, alias + 1)} out; labels are given to events"
    return error("foreign-word", span, message, hint, fixes=[Fix(span, "")])


def _join(place: Place) -> Diagnostic:
    join = place.index + (word_of(place.following) in ("JOIN", "ALL"))
    fixes = _joined_stream(place, join, place.previous.span.to(place.tokens[join].span))
    return error(
        "unknown-clause",
        place.found.span,
        f"there is no clause '{place.found.text}'",
        *(f"write FROM {fix.text}" for fix in fixes),
        "streams are listed with commas, each once: FROM S, T",
        fixes=fixes,
    )


def _joined_stream(place: Place, join: int, span: Span) -> list[Fix]:
    other = place.tokens[join + 1]
    streams, listed = declared(place).streams, name_text(place.previous)
    if name_text(other) not in streams:
        return []
    whole = span.to(other.span)
    if name_text(other) == listed:
        return [Fix(whole, place.previous.text)]
    return [Fix(whole, f"{place.previous.text}, {other.text}")]


def declared_columns(place: Place) -> Diagnostic | None:
    """`CREATE TABLE S (a INT)`, `CREATE STREAM S (a INT)`, `CREATE SCHEMA A (a INT)` and `DEFINE
    STREAM S (a INT)`."""
    first, tokens = place.statement_start, place.tokens
    words = [token.text.upper() for token in tokens[first : first + 6]]
    what = next((one for one in words if one in ("TABLE", "STREAM", "SCHEMA")), None)
    if words[0] not in ("CREATE", "DEFINE") or what is None or place.index > first + 5:
        return None
    opener = next((i for i in range(first, first + 8) if place.token(i).type == "LPAR"), None)
    closer = None if opener is None else place.closer(opener)
    if opener is None or closer is None or tokens[opener - 1].type != "NAME":
        return None
    name, listed = tokens[opener - 1].text, columns(place, opener, closer)
    end = closer + 1
    while tokens[end].type != END and not begins_statement(tokens, end):
        end += 1
        if tokens[end - 1].type == "SEMICOLON":
            break
    events = types_in_formulas(place, end) or ["A"]
    stream = "S" if what == "SCHEMA" else name
    if what == "SCHEMA":
        events = [name]
    declared_events = [f"EVENT {event} {{ {', '.join(listed)} }}" for event in events]
    mended = f"CREATE STREAM {stream} {{ {', '.join(declared_events)} }}"
    types = "each value of the column 'type' that the query names is an event type of its own"
    return error(
        "foreign-word",
        place.span(first, opener),
        f"there is no {place.raw(first, opener - 1).upper()} with columns in parentheses",
        f"a stream declares its event types: {offered(mended)}",
        *(() if what == "SCHEMA" else (types,)),
        fixes=[Fix(place.span(first, end), f"{mended}\n")] if listed else [],
    )


def foreign_statement(place: Place) -> Diagnostic | None:
    """UNION, WITH, CREATE VIEW and INSERT."""
    words = [word_of(token) for token in place.tokens[place.start : place.index + 1]]
    first = place.statement_start
    start_word = place.tokens[first].text.upper()
    if words and words[-1] in ("UNION", "INTERSECT", "EXCEPT", "MINUS") and place.after_operand:
        return _union(place)
    select = next(
        (i for i in range(first, len(place.tokens)) if keyword_of(place.tokens[i]) == "SELECT"),
        None,
    )
    if select is None or place.index > first + 4:
        return None
    made = next(
        (
            i
            for i in range(first, first + 6)
            if word_of(place.token(i)) in ("VIEW", "TABLE", "QUERY")
        ),
        None,
    )
    if start_word == "CREATE" and made is not None and made < select:
        name = place.token(made + 1).text
        if keyword_of(place.token(select - 1)) == "AS" or word_of(place.token(made)) == "QUERY":
            advice = f"a query has a name: {name}"
            return _named(place, (first, made + 1), select, f"QUERY {name}: SELECT", advice)
        example = "EVENT A { id: INT, ts: TIMESTAMP }"
        hint = f"declare what the table has: CREATE STREAM {name} {{ {example} }}"
        said = place.raw(first, made + 1).upper()
        return error("foreign-word", place.span(first, made + 2), f"there is no {said}", hint)
    if start_word == "INSERT":
        advice = "the answer of a query is written by who calls it"
        return _named(place, (first, first + 2), select, "SELECT", advice)
    if start_word == "WITH" and place.index == first + 1:
        hints = [
            "a query reads streams, not queries: put its formula in parentheses into this one",
        ]
        text = "a query cannot begin with WITH"
        return error("foreign-word", place.tokens[first].span, text, *hints)
    return None


def _named(
    place: Place, words: tuple[int, int], select: int, mended: str, advice: str
) -> Diagnostic:
    first, end = words
    message = f"there is no {place.raw(first, min(end, select)).upper()}"
    hint = f"{advice}; write {mended} …"
    fixes = [Fix(place.span(first, select + 1), mended)]
    return error("foreign-word", place.span(first, select), message, hint, fixes=fixes)


def _union(place: Place) -> Diagnostic:
    tokens = place.tokens
    after = place.index + 1 + (word_of(place.following) == "ALL")
    fixes = []
    rest = range(place.index, len(tokens))
    where = next((i for i in rest if keyword_of(tokens[i]) == "WHERE"), None)
    if place.found.text.upper() == "UNION" and where is not None and where > after:
        fixes = [Fix(place.span(place.index, where + 1), "OR")]
    message = f"there is no {place.found.text.upper()}"
    hint = "join the formulas in one query: WHERE A OR B, or give the file two named queries"
    return error("foreign-word", place.found.span, message, hint, fixes=fixes)
