"""The languages of query texts, one object each: what commands, editors and Python ask of one.

Which language a text is in is decided here alone. What is the same for all languages, such as
renaming, takes a `Language`. A method imports what it asks, so that a question costs no more than
its answer: `celc check` needs no layout, and `celc fmt` no compiler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.files import SQL_SUFFIX, SUFFIX
from celc.diagnostics.source import Source, Span
from celc.options import Options

if TYPE_CHECKING:
    from celc.driver.pipeline import Compilation
    from celc.editor.completion import Completion
    from celc.editor.formatting.documents import Box
    from celc.editor.formatting.tokens import Word
    from celc.editor.hover import Hover
    from celc.editor.symbols import Occurrence
    from celc.row_pattern.compiler import RowCompilation

Dialect: TypeAlias = Literal["cel", "match_recognize"]

_DEFAULTS = Options()


class Language(ABC):
    """A language of query texts.

    `title` is its name for people, `suffix` the ending of its files. `options` are the choices of a
    compilation that it has.
    """

    title: ClassVar[str]
    suffix: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset(one.name for one in fields(Options))

    def foreign(self, options: Options) -> list[str]:
        """The choices among these that it has not."""
        return [
            one.name
            for one in fields(options)
            if one.name not in self.options
            and getattr(options, one.name) != getattr(_DEFAULTS, one.name)
        ]

    def has(self, source: Source) -> bool:
        """Whether a file of its ending is in it: other languages can have this ending."""
        return True

    @abstractmethod
    def compile(
        self,
        sources: Sequence[Source],
        options: Options,
        schema: Any = None,
    ) -> Compilation | RowCompilation:
        """The texts as one module; schema: the columns of tables that they do not declare.

        Raises `CelError` with all errors of all texts.
        """

    def check(
        self, source: Source, options: Options = _DEFAULTS, schema: Any = None
    ) -> tuple[Diagnostic, ...]:
        """All errors and warnings of a text, in the order of their places."""
        try:
            return self.compile([source], options, schema).warnings
        except CelError as problem:
            return problem.diagnostics

    @abstractmethod
    def resolve(self, source: Source, options: Options) -> None:
        """Look up names, types and clauses alone, which takes no automaton. Raises `CelError`."""

    @abstractmethod
    def words(self) -> Mapping[str, frozenset[str]]:
        """Its words in capitals: `keyword`, `type` and `function`."""

    @abstractmethod
    def occurrences(self, source: Source) -> tuple[Occurrence, ...]:
        """All names of a text in order. Raises `CelError` where it has no syntax tree."""

    @abstractmethod
    def queries(self, source: Source) -> tuple[tuple[str | None, Span], ...]:
        """The names of the queries of a text, and their places. Raises `CelError` where it has no
        syntax tree."""

    @abstractmethod
    def read_words(self, source: Source) -> tuple[Any, list[Word]]:
        """The tree of a text, and its words with their comments; the last word is its end.

        Raises `CelError` where the text is not in the language.
        """

    def in_own_words(self, source: Source) -> Source:
        """The text without the words of other systems for types. Raises `CelError` likewise."""
        return source

    @abstractmethod
    def layout(self, tree: Any, words: list[Word]) -> Box:
        """The boxes of a text that is read."""

    @abstractmethod
    def complete(self, text: str, offset: int) -> tuple[Completion, ...]:
        """The words that could stand at an offset of any text."""

    @abstractmethod
    def hover(self, text: str, offset: int) -> Hover | None:
        """What the word at an offset of any text is."""


class _Cel(Language):
    title = "CEL"
    suffix = SUFFIX

    def compile(
        self,
        sources: Sequence[Source],
        options: Options,
        schema: Any = None,
    ) -> Compilation:
        from celc.driver.pipeline import compile_files

        return compile_files(sources, options, schema=schema)

    def resolve(self, source: Source, options: Options) -> None:
        from celc.parse.parser import parse
        from celc.resolve.resolver import resolve

        resolve(parse(source), source, order_by=options.order_by, ties=options.ties)

    def words(self) -> Mapping[str, frozenset[str]]:
        from celc.diagnostics.messages.functions import FUNCTIONS
        from celc.parse.tables import grammar
        from celc.resolve.types.own_aggregates import IN_AGGREGATES
        from celc.resolve.types.written import TYPE_NAMES

        return {
            "keyword": frozenset(grammar().keywords),
            "type": frozenset(TYPE_NAMES),
            "function": frozenset((*FUNCTIONS, *IN_AGGREGATES)),
        }

    def occurrences(self, source: Source) -> tuple[Occurrence, ...]:
        from celc.editor.symbols import occurrences
        from celc.parse.parser import parse

        return occurrences(parse(source))

    def queries(self, source: Source) -> tuple[tuple[str | None, Span], ...]:
        from celc.parse.parser import parse

        found = parse(source).queries
        return tuple((one.name.text if one.name else None, one.span) for one in found)

    def read_words(self, source: Source) -> tuple[Any, list[Word]]:
        from celc.editor.formatting.cel import words_of

        return words_of(source)

    def in_own_words(self, source: Source) -> Source:
        from celc.editor.formatting.types import in_own_words

        return in_own_words(source)

    def layout(self, tree: Any, words: list[Word]) -> Box:
        from celc.editor.formatting.cel import document_of

        return document_of(tree, words)

    def complete(self, text: str, offset: int) -> tuple[Completion, ...]:
        from celc.editor.completion import complete

        return complete(text, offset)

    def hover(self, text: str, offset: int) -> Hover | None:
        from celc.editor.hover import hover

        return hover(text, offset)


class _RowPatterns(Language):
    title = "MATCH_RECOGNIZE"
    suffix = SQL_SUFFIX
    options = frozenset({"max_work", "joins"})  # `joins` is chosen by a command, and by no user

    def has(self, source: Source) -> bool:
        return "match_recognize" in source.text.casefold()

    def compile(
        self,
        sources: Sequence[Source],
        options: Options,
        schema: Any = None,
    ) -> RowCompilation:
        from celc.row_pattern.compiler import compile_rows

        (source,) = sources
        return compile_rows(source, PurePath(source.name).stem, schema, options.max_work)

    def is_statement(self, source: Source) -> bool:
        """Whether a text is a whole statement of SQL, which a host runs (`celc.sql`)."""
        from celc.row_pattern.parser import first_wrong

        if first_wrong(source.text) is None:
            return False
        # It imports sqlglot.
        from celc.statements.checked import is_statement

        return is_statement(source)

    def check(
        self, source: Source, options: Options = _DEFAULTS, schema: Any = None
    ) -> tuple[Diagnostic, ...]:
        """As for all languages; of a whole statement what can be said without a host."""
        if not self.is_statement(source):
            return super().check(source, options, schema)
        from celc.statements.checked import problems_of

        return problems_of(source)

    def resolve(self, source: Source, options: Options) -> None:
        from celc.row_pattern.parser import parse
        from celc.row_pattern.resolver import resolve

        found = Diagnostics(source)
        resolve(parse(source, found), found, PurePath(source.name).stem, None)

    def words(self) -> Mapping[str, frozenset[str]]:
        from celc.resolve.types.written import PARAMETER_TYPES
        from celc.row_pattern import expressions, parser

        return {
            "keyword": parser.keywords(),
            "type": frozenset(PARAMETER_TYPES),
            "function": frozenset(expressions.FUNCTIONS),
        }

    def occurrences(self, source: Source) -> tuple[Occurrence, ...]:
        from celc.editor.row_patterns.row_symbols import row_occurrences
        from celc.row_pattern.parser import parse

        return row_occurrences(parse(source))

    def queries(self, source: Source) -> tuple[tuple[str | None, Span], ...]:
        return ((None, Span(0, len(source.text))),)

    def read_words(self, source: Source) -> tuple[Any, list[Word]]:
        from celc.editor.formatting.row_patterns import words_of

        return words_of(source)

    def layout(self, tree: Any, words: list[Word]) -> Box:
        from celc.editor.formatting.row_patterns import document_of

        return document_of(words)

    def complete(self, text: str, offset: int) -> tuple[Completion, ...]:
        from celc.editor.row_patterns.row_completion import complete_rows

        return complete_rows(text, offset)

    def hover(self, text: str, offset: int) -> Hover | None:
        from celc.editor.row_patterns.row_hover import hover_rows

        source = Source("statement.sql", text)
        if not self.is_statement(source):
            return hover_rows(text, offset)
        from celc.editor.row_patterns.in_statements import hover_in_clause

        return hover_in_clause(source, offset)


CEL = _Cel()
ROW_PATTERNS = _RowPatterns()
LANGUAGES: dict[Dialect, _Cel | _RowPatterns] = {"cel": CEL, "match_recognize": ROW_PATTERNS}


def language_of(*names: str | PurePath) -> _Cel | _RowPatterns:
    """The language of files that become one module, by their names.

    Raises ValueError where they cannot become one.
    """
    of_rows = [name for name in names if PurePath(name).suffix == ROW_PATTERNS.suffix]
    if of_rows and len(names) > 1:
        raise ValueError(
            f"{of_rows[0]}: a file with MATCH_RECOGNIZE becomes a module of its own: name it alone"
        )
    return ROW_PATTERNS if of_rows else CEL
