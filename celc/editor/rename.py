"""Another name for a thing, at all places that name it; refused where the text would change its
meaning.

The new text is read again. Every name must mean in it what it meant before, and no error may appear
or disappear. This finds names that are taken, hidden, or keywords at their place.
"""

from collections.abc import Sequence

from celc.diagnostics.errors import CelError, Fix
from celc.diagnostics.source import Source, Span
from celc.editor.checks import Dialect, errors_of_names
from celc.editor.completion import quoted
from celc.editor.row_symbols import row_occurrences
from celc.editor.symbols import Occurrence, occurrence_at, occurrences, same_groups
from celc.options import Options
from celc.parse.parser import parse
from celc.parse.tables import grammar
from celc.row_pattern.parser import keywords
from celc.row_pattern.parser import parse as parse_rows

_DEFAULTS = Options()


class RenameProblem(Exception):
    """Why a name stays, in words for the user."""


def names_of(source: Source, dialect: Dialect) -> tuple[Occurrence, ...]:
    """All names of a text in order. Raises CelError where it has no syntax tree."""
    if dialect == "match_recognize":
        return row_occurrences(parse_rows(source))
    return occurrences(parse(source))


def renameable(source: Source, offset: int, dialect: Dialect) -> Occurrence:
    """The name at a place. Raises RenameProblem where no name there can be changed."""
    return _renameable(_names(source, dialect), offset)


def rename(
    source: Source, offset: int, name: str, dialect: Dialect, options: Options = _DEFAULTS
) -> tuple[Fix, ...]:
    """The changes that give the thing at a place another name, in order. `options` are those of
    `celc check`. Raises RenameProblem where the text has errors, or would change its meaning."""
    found = _names(source, dialect)
    symbol = _renameable(found, offset).symbol
    new = _unquoted(name.strip())
    if not new or "\n" in new:
        raise RenameProblem("a name is one line of text, and not empty")
    spelled = _spelled(new, dialect)
    fixes = tuple(Fix(one.span, spelled) for one in found if one.symbol == symbol)
    text, places = _changed(source.text, found, fixes)
    after = Source(source.name, text)
    try:
        names = names_of(after, dialect)
    except CelError as problem:
        raise RenameProblem(f"'{new}' cannot stand here: {_first(problem)}") from None
    if not same_groups(found, names, places):
        raise RenameProblem(f"'{new}' is taken: the text would mean something else")
    before = [one.code for one in errors_of_names(source, dialect, options)]
    new_errors = errors_of_names(after, dialect, options)
    if [one.code for one in new_errors] != before:
        told = new_errors[0].message if new_errors else "the errors of the text would be others"
        raise RenameProblem(f"'{new}' cannot stand here: {told}")
    return fixes


def _names(source: Source, dialect: Dialect) -> tuple[Occurrence, ...]:
    try:
        return names_of(source, dialect)
    except CelError as problem:
        raise RenameProblem(f"the text has an error, mend it first: {_first(problem)}") from None


def _renameable(found: Sequence[Occurrence], offset: int) -> Occurrence:
    occurrence = occurrence_at(found, offset)
    if occurrence is None:
        raise RenameProblem("there is no name here")
    if not any(one.declares for one in found if one.symbol == occurrence.symbol):
        raise RenameProblem(f"'{occurrence.symbol.name}' is not declared in this text")
    return occurrence


def _first(problem: CelError) -> str:
    return next(one.message for one in problem.diagnostics if one.severity == "error")


def _unquoted(name: str) -> str:
    if len(name) > 1 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    return name


def _spelled(name: str, dialect: Dialect) -> str:
    words = keywords() if dialect == "match_recognize" else grammar().keywords
    return name if name.isidentifier() and name.upper() not in words else quoted(name)


def _changed(
    text: str, found: Sequence[Occurrence], fixes: Sequence[Fix]
) -> tuple[str, dict[Span, Span]]:
    """The text with all changes, and the new places of all names."""
    spelled = {fix.span: fix.text for fix in fixes}
    parts, places = list[str](), dict[Span, Span]()
    length = end = 0
    for span in sorted({one.span for one in found}):
        name = spelled.get(span, text[span.start : span.end])
        parts += [text[end : span.start], name]
        length += span.start - end
        places[span] = Span(length, length + len(name))
        length, end = length + len(name), span.end
    return "".join([*parts, text[end:]]), places
