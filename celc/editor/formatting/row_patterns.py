"""The layout of a query with MATCH_RECOGNIZE: its clauses on lines of their own, in parentheses."""

from itertools import pairwise

from celc.diagnostics.source import Source, Span
from celc.editor.formatting.chains import Chains, closing_brackets
from celc.editor.formatting.documents import INDENT, SPACE, Box, Break, Document, box
from celc.editor.formatting.operators import read_operators
from celc.editor.formatting.tokens import Word, attach_comments, has_comment, move_comments
from celc.row_pattern import syntax
from celc.row_pattern.machine import plain_text
from celc.row_pattern.parser import keywords, parse, tokens_of

_NEXT_LINE = Break(always=True)
_NEXT_STATEMENT = Break(always=True, blank=True)
_END_OF_FILE = Break(always=True, keeps_blank=True)

_LEVELS = {"WHEN": 1, "ELSE": 1, "THEN": 2, "OR": 3, "AND": 4}
_LEVELS |= {"EQUALS": 5, "DIFFERS": 5, "LESS": 5, "GREATER": 5}
_ALTERNATIVE, _PART = 1, 2
_CLAUSES = frozenset(
    {"PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET"}
    | {"DEFINE"}
)
_LISTS = frozenset({"SELECT", "PARTITION", "ORDER", "MEASURES", "SUBSET", "DEFINE"})
_NO_SPACE_BEFORE = frozenset({"COMMA", "RPAR", "RBRACE", "DOT", "SEMICOLON"})
_NO_SPACE_AFTER = frozenset({"LPAR", "LBRACE", "DOT"})
_NAMES = frozenset({"NAME", "QUOTED"})
_CALLED = frozenset({"PERMUTE", "CAST", "TRY_CAST"})
_QUANTIFIERS = frozenset({"STAR", "PLUS", "QUESTION", "LBRACE"})


def words_of(source: Source) -> tuple[syntax.Query, list[Word]]:
    """The tree of a text, and its words with their comments; the last word is its end.

    Raises `CelError` where the text is not in the language.
    """
    tree = parse(source)
    as_written = _called_by_their_texts(tree)
    words = []
    for token in tokens_of(source):
        key = next((one for one in as_written if one.start <= token.start < one.end), None)
        if key is not None:
            if token.start == key.start:
                written = source.slice(key)
                text = written if has_comment(written) else plain_text(written)
                words.append(Word("NAME", text, key.start, key.end))
            continue
        spelled = token.text.upper() if token.type in keywords() else token.text
        words.append(Word(token.type, spelled, token.start, token.end))
    end = len(source.text)
    words.append(Word("$END", "", end, end))
    attach_comments(source.text, words)
    return tree, words


def _called_by_their_texts(tree: syntax.Query) -> list[Span]:
    """The keys without a name: the text of such an expression is that of its column."""
    keys = (*tree.partition_by, *(one.key for one in tree.order_by))
    return [one.expression.span for one in keys if one.name is None and one.column is None]


def document_of(words: list[Word]) -> Box:
    """The document of a text."""
    return _Layout(words).document()


class _Layout:
    """Decides spaces and levels of the words, then makes boxes of them."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._closing = closing_brackets(words)
        self._chains = Chains(words, self._closing)
        self._end = len(words) - 1
        kinds = [word.kind for word in words]
        self._select = kinds.index("SELECT")
        # FROM t MATCH_RECOGNIZE ( … )
        self._from = kinds.index("FROM", self._select)
        self._opening = kinds.index("MATCH_RECOGNIZE", self._from) + 1
        self._pattern = next(
            index
            for index in range(self._opening, self._end)
            if kinds[index] == "PATTERN" and kinds[index + 1] == "LPAR"
        )

    def document(self) -> Box:
        """The document of the whole text."""
        self._read()
        move_comments(self._words, [word.kind == "COMMA" for word in self._words])
        parts: list[Document] = []
        if self._select:
            parts += [self._table(), _NEXT_STATEMENT]
        parts += [self._clause(self._select, self._from), _NEXT_LINE]
        parts.append(self._chains.flat(self._from, self._opening + 1))
        closing = self._closing[self._opening]
        inner: list[Document] = []
        for start, stop in self._clauses(self._opening + 1, closing):
            inner += [_NEXT_LINE, self._clause(start, stop)]
        parts += [box(*inner, indent=INDENT), _NEXT_LINE, self._chains.flat(closing, self._end)]
        return box(*parts, _END_OF_FILE, self._words[-1].piece())

    # --- what each word is ------------------------------------------------------------------------

    def _read(self) -> None:
        pattern = range(self._pattern + 2, self._closing[self._pattern + 1])
        for index in pattern:
            self._read_pattern_word(index)
        depth = 0
        for word in self._words[: self._select]:
            # ARRAY<STRUCT<a: INT, b: INT>>
            depth += (word.kind == "LESS") - (word.kind == "GREATER")
            if depth or word.kind == "GREATER":
                word.role = "type"
        for word in self._words:
            if word.kind in ("WHEN", "ELSE"):
                word.level, word.role = _LEVELS[word.kind], "branch"
        outside = [index for index in range(self._end) if index not in pattern]
        read_operators(self._words, outside, _LEVELS)
        for index in range(1, self._end):
            in_pattern = index in pattern
            before, word = self._words[index - 1], self._words[index]
            word.spaced = _is_spaced(before, word, in_pattern=in_pattern)

    def _read_pattern_word(self, index: int) -> None:
        word, before = self._words[index], self._words[index - 1]
        if word.role == "bound":
            return
        if word.kind in _QUANTIFIERS:
            word.role = "bounds" if word.kind == "LBRACE" else "postfix"
            if word.kind == "LBRACE":
                for inside in range(index + 1, self._closing[index] + 1):
                    self._words[inside].role = "bound"
        elif word.kind == "VBAR":
            word.level = _ALTERNATIVE
        elif word.kind == "COMMA":
            word.level = 0
        elif word.kind in (*_NAMES, "LPAR", "PERMUTE", "EXCLUDE", "CARET", "DOLLAR"):
            is_first = before.kind in ("LPAR", "PERMUTE", "EXCLUDE", "VBAR", "COMMA")
            if not is_first:
                word.level, word.role = _PART, "part"

    # --- boxes ------------------------------------------------------------------------------------

    def _table(self) -> Box:
        """CREATE TABLE name ( … ) with its semicolon."""
        closing = self._closing[3]
        columns = self._chains.bracket(3, closing, 0)
        return box(
            self._chains.flat(0, 3), SPACE, columns, self._chains.flat(closing + 1, self._select)
        )

    def _clauses(self, start: int, end: int) -> list[tuple[int, int]]:
        starts, index = list[int](), start
        while index < end:
            if self._words[index].kind in _CLAUSES:
                starts.append(index)
            index = self._closing.get(index, index) + 1
        return list(pairwise([*starts, end]))

    def _clause(self, start: int, end: int) -> Box:
        kind = self._words[start].kind
        if kind not in _LISTS:
            return self._chains.between(start, end)
        first = start + (2 if kind in ("PARTITION", "ORDER") else 1)
        items = self._chains.between(first, end, indent=0)
        head = self._chains.flat(start, first)
        return box(head, box(Break(), items, indent=INDENT), whole=True)


def _is_spaced(before: Word, word: Word, *, in_pattern: bool) -> bool:
    """Whether a space stands between two words of a line."""
    if word.kind in _NO_SPACE_BEFORE or before.kind in _NO_SPACE_AFTER:
        return False
    if word.role == before.role == "type":
        return before.kind in ("COMMA", "COLON")
    if word.kind == "LESS" and word.role == "type":
        return False
    if word.role in ("postfix", "bounds") or (word.role == before.role == "bound"):
        return False
    if before.role == "sign":
        return word.role == "sign"
    if word.kind == "LPAR":
        return before.kind not in _CALLED and (in_pattern or before.kind not in _NAMES)
    return True
