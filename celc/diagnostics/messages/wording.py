"""Phrases that many messages share: lists of names, and guesses at the intended name."""

import difflib
from collections.abc import Collection, Iterable
from math import log10

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span

_LONGEST_LIST = 12
_LONGEST_NAME = 60
# difflib compares letter by letter; past this many names a guess is not worth the wait.
_MOST_CANDIDATES = 300


def quote(name: str) -> str:
    """A name in quotes, cut off where it is very long."""
    return f"'{name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + '…'}'"


def quoted(names: Iterable[str]) -> str:
    """Names in quotes with commas, cut off where there are many."""
    found = [quote(name) for name in names]
    if len(found) <= _LONGEST_LIST:
        return ", ".join(found)
    return f"{', '.join(found[:_LONGEST_LIST])} and {len(found) - _LONGEST_LIST:,} more"


def guesses(name: str, candidates: Collection[str]) -> list[str]:
    """The names most like `name` (case aside), the likest first."""
    by_folded: dict[str, str] = {}
    for candidate in list(candidates)[:_MOST_CANDIDATES]:
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    return [by_folded[folded] for folded in close]


def guess(name: str, candidates: Collection[str]) -> tuple[str, ...]:
    """A help line with the names most like `name`; empty where none is like it."""
    close = guesses(name, candidates)
    return (f"did you mean {' or '.join(map(quote, close))}?",) if close else ()


def guessed(name: str, candidates: Collection[str], span: Span) -> tuple[Fix, ...]:
    """The changes that `guess` offers."""
    return tuple(Fix(span, written(one)) for one in guesses(name, candidates))


def written(name: str) -> str:
    """A name as it is written in a query: in backquotes where it is no plain word."""
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def name_with_signs(name: str, span: Span, *, is_name: bool = True) -> Diagnostic:
    """`page-view`; unless it `is_name`, the text may mean something else."""
    sign = next(one for one in name if one != "_" and not one.isalnum())
    shown, quoted = "space" if sign.isspace() else f"'{sign}'", written(name)
    message = f"a name with a {shown} stands in backquotes"
    fixes = [Fix(span, quoted)] if is_name else []
    return error("name-with-signs", span, message, f"write {quoted}", fixes=fixes)


def names_with_signs_around(
    text: str, span: Span, names: Collection[str], *, after_label: bool = True
) -> Diagnostic | None:
    """The error about a name of several words of which the place is one, as in `PARTITION BY
    user-id` and, `after_label`, `x.user-id`; None where they are none of `names`."""
    start, end = span.start, span.end
    first, last = max(0, start - _LONGEST_NAME), min(len(text), end + _LONGEST_NAME)
    while start > first and _is_glued(text[start - 1]):
        start -= 1
    while end < last and _is_glued(text[end]):
        end += 1
    whole = text[start:end]
    label, _, name = whole.partition(".")
    for one, begin in ((whole, start), (name, start + len(label) + 1 if after_label else start)):
        if one in names and not one.isidentifier():
            return name_with_signs(one, Span(begin, end))
    return None


def _is_glued(sign: str) -> bool:
    return sign.isalnum() or sign in "_-./:"


def type_as_value(event_type: str) -> str:
    """How the type of an event becomes a value, which no attribute holds by itself."""
    text = event_type.replace("'", "''")
    declared = f"EVENT {written(event_type)} {{ kind: STRING = '{text}', … }}"
    return f"for a value declare an attribute of it: {declared}"


def available(what: str, names: Collection[str]) -> tuple[str, ...]:
    """A help line that lists what there is, such as `event types here: 'A', 'B'`."""
    return (f"{what}: {quoted(names)}" if names else f"{what}: none",)


def unknown(
    code: str, span: Span, message: str, name: str, what: str, names: Collection[str], *help: str
) -> Diagnostic:
    """The error about a name that nothing has: the names most like it, and all that there are."""
    told = (*guess(name, names), *available(what, names), *help)
    return error(code, span, message, *told, fixes=guessed(name, names, span))


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun: `1 event`, `2 events`; astronomic numbers in powers of ten."""
    plural = plural or f"{singular}s"
    if number >= 10**15:
        # Not by way of str(number), which refuses to write thousands of digits.
        return f"about 10^{round((number.bit_length() - 1) * log10(2))} {plural}"
    return f"{number:,} {singular if number == 1 else plural}"


def parts_offered(type: str) -> str | None:
    """What a condition can ask of a value with parts; None: it has none."""
    match type.partition("<")[0]:
        case "ARRAY":
            return "compare an element x.a[0], ask CONTAINS(x.a, 5), or SIZE(x.a) = 2"
        case "MAP":
            return (
                "compare the value at a key, x.a['key'], ask CONTAINS(x.a, 'key') or SIZE(x.a) = 2"
            )
        case "STRUCT":
            return "compare a field: x.a.b"
        case _:
            return None
