"""Another name for a thing, at all places that name it; refused where the text would change its
meaning.

The new text is read again. Every name must mean in it what it meant before, and no error may appear
or disappear. This finds names that are taken, hidden, or keywords at their place.
"""

from collections.abc import Sequence

from celc.core.declarations import quoted
from celc.diagnostics.errors import CelError, Diagnostic, Fix
from celc.diagnostics.source import Source, Span
from celc.editor.languages import Language
from celc.editor.symbols import Occurrence, occurrence_at, same_groups
from celc.options import Options

_DEFAULTS = Options()


class RenameProblem(Exception):
    """Why a name stays, in words for the user."""


def renameable(source: Source, offset: int, language: Language) -> Occurrence:
    """The name at a place. Raises RenameProblem where no name there can be changed."""
    return _renameable(_names(source, language), offset)


def rename(
    source: Source, offset: int, name: str, language: Language, options: Options = _DEFAULTS
) -> tuple[Fix, ...]:
    """The changes that give the thing at a place another name, in order. `options` are those of
    `celc check`. Raises RenameProblem where the text has errors, or would change its meaning."""
    found = _names(source, language)
    symbol = _renameable(found, offset).symbol
    new = _unquoted(name.strip())
    if not new or "\n" in new:
        raise RenameProblem("a name is one line of text, and not empty")
    spelled = _spelled(new, language)
    fixes = tuple(Fix(one.span, spelled) for one in found if one.symbol == symbol)
    text, places = _changed(source.text, found, fixes)
    after = Source(source.name, text)
    try:
        names = language.occurrences(after)
    except CelError as problem:
        raise RenameProblem(f"'{new}' cannot stand here: {_first(problem)}") from None
    if not same_groups(found, names, places):
        raise RenameProblem(f"'{new}' is taken: the text would mean something else")
    before = [one.code for one in _errors(source, language, options)]
    new_errors = _errors(after, language, options)
    if [one.code for one in new_errors] != before:
        told = new_errors[0].message if new_errors else "the errors of the text would be others"
        raise RenameProblem(f"'{new}' cannot stand here: {told}")
    return fixes


def _names(source: Source, language: Language) -> tuple[Occurrence, ...]:
    try:
        return language.occurrences(source)
    except CelError as problem:
        raise RenameProblem(f"the text has an error, mend it first: {_first(problem)}") from None


def _errors(source: Source, language: Language, options: Options) -> list[Diagnostic]:
    """The errors about names, types and clauses."""
    try:
        language.resolve(source, options)
    except CelError as problem:
        return [one for one in problem.diagnostics if one.severity == "error"]
    return []


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


def _spelled(name: str, language: Language) -> str:
    is_plain = name.isidentifier() and name.upper() not in language.words()["keyword"]
    return name if is_plain else quoted(name)


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
