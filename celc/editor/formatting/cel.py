"""The layout of a `.cel` file: a statement after an empty line, a clause on a line of its own."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from celc.diagnostics.source import Source
from celc.editor.formatting.chains import Chains, closing_brackets
from celc.editor.formatting.documents import INDENT, SPACE, Box, Break, Document, box
from celc.editor.formatting.operators import read_operators
from celc.editor.formatting.tokens import Word, attach_comments, move_comments
from celc.parse import syntax
from celc.parse.parser import parse_with_tokens
from celc.parse.tables import grammar
from celc.parse.tokens import Token
from celc.parse.trees import nodes_of

_Statement: TypeAlias = (
    syntax.StreamDeclaration
    | syntax.ParametersDeclaration
    | syntax.AggregateDeclaration
    | syntax.FunctionDeclaration
    | syntax.Query
)

_NEXT_LINE = Break(always=True)
_NEXT_EVENT = Break(always=True, keeps_blank=True)
_NEXT_STATEMENT = Break(always=True, blank=True)
_END_OF_FILE = Break(always=True, keeps_blank=True)

_FORMULA_LEVELS = {"UNLESS": 1, "FILTER": 1, "OR": 2, "AND": 3, "ALL": 3}
_FORMULA_LEVELS |= {"SEMICOLON": 4, "COLON": 4}
_CONDITION_LEVELS = {"OR": 2, "AND": 3, "EQUAL": 5, "NOT_EQUAL": 5, "LESS": 5, "LESS_EQUAL": 5}
_CONDITION_LEVELS |= {"GREATER": 5, "GREATER_EQUAL": 5}
_LISTS = frozenset({"SELECT", "FROM", "PARTITION", "STATE", "STEP"})
_NO_SPACE_BEFORE = frozenset(
    {"COMMA", "RPAR", "RSQB", "RBRACE", "DOT", "TWO_DOTS", "QUESTION", "COLON_PLUS"}
    | {"COLON_LBRACE", "DOUBLE_COLON"}
)
_NO_SPACE_AFTER = frozenset({"LPAR", "LSQB", "LBRACE", "DOT", "TWO_DOTS", "BANG", "DOUBLE_COLON"})
_CALLED = frozenset(
    {"NAME", "ATTRIBUTE", "STRICT", "NXT", "NEXT", "LAST", "MAX", "PREV", "IF", "RSQB"}
)
_SPACE_BEFORE_BRACKET = frozenset(
    {"INTEGER", "DOUBLE", "UNIT", "BY", "COMMA", "UNCERTAIN", "LASTING", "VALID"}
)


def words_of(source: Source) -> tuple[syntax.File, list[Word]]:
    """The tree of a text, and its words with their comments; the last word is its end.

    Raises `CelError` where the text is not in the language.
    """
    file, tokens = parse_with_tokens(source)
    words = [_word(tokens, index) for index in range(len(tokens))]
    words[-1].start = words[-1].end = len(source.text)
    attach_comments(source.text, words)
    return file, words


def document_of(file: syntax.File, words: list[Word]) -> Box:
    """The document of a file."""
    layout = _Layout(words)
    statements: list[_Statement] = sorted(
        (*file.streams, *file.aggregates, *file.functions, *file.parameters, *file.queries),
        key=lambda statement: statement.span.start,
    )
    places = [word.start for word in words]
    starts = [bisect_left(places, one.span.start) for one in statements]
    bounds = list(zip(starts, [*starts[1:], len(words) - 1], strict=True))
    for statement, (start, end) in zip(statements, bounds, strict=True):
        layout.read(statement, start, end)
    move_comments(words, [word.kind == "COMMA" for word in words])
    parts: list[Document] = []
    for statement, (start, end) in zip(statements, bounds, strict=True):
        parts += [_NEXT_STATEMENT] if parts else []
        parts.append(layout.statement(statement, start, end))
    return box(*parts, _END_OF_FILE, words[-1].piece())


def _word(tokens: Sequence[Token], index: int) -> Word:
    token = tokens[index]
    word = Word(token.type, token.text, token.start, token.end)
    after_number = index and tokens[index - 1].type in ("INTEGER", "DOUBLE")
    if token.type == "UNIT" or (token.type == "ATTRIBUTE" and after_number):
        word.kind = "UNIT"
        if token.text.isascii() and not token.is_quoted:
            word.text = token.text.upper()
    elif grammar().keywords.get(token.text.upper()) == token.type:
        word.text = token.text.upper()
    return word


class _Layout:
    """Decides spaces and levels of words (`read`), then makes boxes of them (`statement`)."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._closing = closing_brackets(words)
        self._chains = Chains(words, self._closing)

    # --- what each word is ------------------------------------------------------------------------

    def read(self, statement: _Statement, start: int, end: int) -> None:
        """Set the roles, levels and spaces of the words of a statement."""
        if isinstance(statement, syntax.Query):
            self._read_names(statement, start, end)
            for begin, stop in self._clauses(start, end):
                is_formula = self._words[begin].kind == "WHERE" or statement.select is None
                self._read_levels(begin, stop, statement if is_formula else None)
        else:
            for index in range(start, end):
                if self._words[index].kind == "COLON":
                    self._words[index].role = "postfix"
            self._read_levels(start, end, None)
            self._read_types(statement, start, end)
        self._read_paths(statement, start, end)
        for index in range(start + 1, end):
            self._words[index].spaced = _is_spaced(self._words[index - 1], self._words[index])

    def _read_paths(self, statement: _Statement, start: int, end: int) -> None:
        """Find the colons before paths into texts of JSON."""
        places = [word.start for word in self._words[start:end]]
        for node in nodes_of(statement):
            if isinstance(node, syntax.JsonValue):
                colon = start + bisect_left(places, node.operand.span.end)
                self._words[colon].role = "tight"

    def _read_types(self, statement: _Statement, start: int, end: int) -> None:
        """Make brackets of the `<` and `>` of types."""
        places = [word.start for word in self._words[start:end]]
        for node in nodes_of(statement):
            if isinstance(node, syntax.WrittenType) and node.parts:
                opening = start + bisect_left(places, node.name.span.end)
                closing = start + bisect_left(places, node.span.end) - 1
                self._closing[opening] = closing
                for index in (opening, closing):
                    self._words[index].role, self._words[index].level = "tight", None

    def _read_names(self, query: syntax.Query, start: int, end: int) -> None:
        """Find the `>` of `S>R`, and the colons behind the name of the query and behind labels."""
        if query.name is not None:
            self._words[start + 2].role = "postfix"
        places = [word.start for word in self._words[start:end]]
        for node in nodes_of(query):
            if isinstance(node, syntax.EventAtom | syntax.TypeTest) and node.stream is not None:
                self._words[start + bisect_left(places, node.stream.span.end)].role = "tight"
            elif isinstance(node, syntax.Quantified):
                colon = start + bisect_left(places, node.labels[-1].span.end)
                self._words[colon].role = "postfix"

    def _read_levels(self, start: int, end: int, query: syntax.Query | None) -> None:
        """Set the levels of operators; `query` is given where its formula stands."""
        conditions = _conditions(query)
        outside = []
        for index in range(start, end):
            if query is None or _is_in(conditions, self._words[index].start):
                outside.append(index)
            else:
                self._read_formula_word(index)
        read_operators(self._words, outside, _CONDITION_LEVELS)

    def _read_formula_word(self, index: int) -> None:
        word = self._words[index]
        match word.kind:
            case "PLUS":
                word.role = "postfix"
            case "LBRACE" | "COLON_LBRACE":
                word.role = "bounds"
                for inside in range(index + 1, self._closing[index]):
                    self._words[inside].role = "bound"
            case "NOT":
                word.role = "selector"
            case kind:
                word.level = _FORMULA_LEVELS.get(kind)

    # --- boxes ------------------------------------------------------------------------------------

    def statement(self, statement: _Statement, start: int, end: int) -> Box:
        """The box of a statement."""
        if isinstance(statement, syntax.StreamDeclaration):
            return self._stream(start, end)
        if isinstance(statement, syntax.ParametersDeclaration):
            return self._set(start, end)
        if isinstance(statement, syntax.AggregateDeclaration):
            return self._aggregate(start, end)
        if isinstance(statement, syntax.FunctionDeclaration):
            return self._chains.between(start, end)
        parts: list[Document] = []
        for begin, stop in self._clauses(start, end):
            parts += [_NEXT_LINE] if parts else []
            parts.append(self._clause(begin, stop))
        return box(*parts)

    def _stream(self, start: int, end: int) -> Box:
        opening = next(i for i in range(start, end) if self._words[i].kind == "LBRACE")
        parts: list[Document] = []
        index = opening + 1
        commas = self._chains.lowest(index, end - 1)
        for stop in (*commas, end - 1):
            event = self._declared(index, stop)
            comma = () if stop == end - 1 else (self._words[stop].piece(),)
            parts += [_NEXT_EVENT, box(event, *comma)]
            index = stop + 1
        last = self._words[end - 1].piece()
        head = self._chains.flat(start, opening + 1)
        return box(head, box(*parts, indent=INDENT), _NEXT_LINE, last)

    def _declared(self, start: int, end: int) -> Box:
        """`EVENT R { … }` or `PARAMETERS rule { … }`."""
        opening = start + 2
        head = self._chains.flat(start, opening)
        return box(head, SPACE, self._chains.bracket(opening, end - 1, 0, gap=" "))

    def _set(self, start: int, end: int) -> Box:
        """`PARAMETERS rule { … }`, with `VALID [since, until]` behind it or without."""
        behind = self._closing[start + 2] + 1
        declared = self._declared(start, behind)
        if behind == end:
            return declared
        return box(declared, SPACE, self._chains.flat(behind, end))

    def _aggregate(self, start: int, end: int) -> Box:
        kinds = ("STATE", "STEP", "RESULT")
        bounds = [*(i for i in range(start, end) if self._words[i].kind in kinds), end]
        clauses: list[Document] = []
        for begin, stop in pairwise(bounds):
            clauses += [_NEXT_LINE, self._clause(begin, stop)]
        return box(self._chains.between(start, bounds[0]), box(*clauses, indent=INDENT))

    def _clauses(self, start: int, end: int) -> list[tuple[int, int]]:
        """The ranges of the clauses of a query."""
        starts, index = [start], start
        while index < end:
            if index > start and self._begins_clause(index):
                starts.append(index)
            index = self._closing.get(index, index) + 1
        return list(zip(starts, [*starts[1:], end], strict=True))

    def _begins_clause(self, index: int) -> bool:
        kind, following = self._words[index].kind, self._words[index + 1].kind
        match kind:
            case "SELECT" | "FROM" | "WHERE" | "WITH" | "CONSUME" | "HAVING" | "LIMIT":
                return True
            case "PER":
                return self._words[index - 2].kind != "LIMIT"
            case "WITHIN":
                return following != "LSQB"
            case "FOR":
                return following == "EACH"
            case "PARTITION":
                return following == "BY"
            case _:
                return False

    def _clause(self, start: int, end: int) -> Box:
        kind = self._words[start].kind
        if kind in _LISTS:
            first = self._first_item(start)
            head = self._chains.flat(start, first)
            items = self._chains.between(first, end, indent=0)
            return box(head, box(Break(), items, indent=INDENT), whole=True)
        if kind in ("WHERE", "HAVING", "RESULT"):
            keyword = self._words[start].piece()
            if keyword.ends_line:
                content = self._chains.between(start + 1, end, indent=0)
                return box(keyword, box(SPACE, content, indent=INDENT))
            return box(keyword, SPACE, self._chains.between(start + 1, end))
        return self._chains.between(start, end)

    def _first_item(self, start: int) -> int:
        """The place after SELECT and its strategy, or after another keyword and its BY."""
        index = start + 1
        if self._words[start].kind in ("SELECT", "PARTITION"):
            keywords = grammar().keywords
            while self._words[index].kind in keywords and self._words[index].kind not in (
                ("NONE", "TRUE", "FALSE", "NULL", "PREV", "IF", "TIMESTAMP", "DATE")
            ):
                index += 1
        return index


def _conditions(query: syntax.Query | None) -> list[tuple[int, int]]:
    """Where the conditions of the FILTERs of a formula begin and end, in order."""
    if query is None:
        return []
    filters = (node for node in nodes_of(query.formula) if isinstance(node, syntax.Filter))
    return sorted((one.condition.span.start, one.condition.span.end) for one in filters)


def _is_in(ranges: Sequence[tuple[int, int]], place: int) -> bool:
    index = bisect_left(ranges, (place + 1,)) - 1
    return index >= 0 and ranges[index][0] <= place < ranges[index][1]


def _is_spaced(before: Word, word: Word) -> bool:
    """Whether a space stands between two words of a line."""
    if word.kind in _NO_SPACE_BEFORE or before.kind in _NO_SPACE_AFTER:
        return False
    if "tight" in (before.role, word.role) or word.role in ("postfix", "bounds"):
        return False
    if before.role in ("bounds", "bound"):
        return False
    if before.role == "sign":
        return word.role == "sign"
    if word.kind == "LPAR":
        return before.kind not in _CALLED and before.role != "selector"
    if word.kind == "LSQB":
        return before.kind in _SPACE_BEFORE_BRACKET
    return True
