"""Regular expressions, which RE2 judges: those of RLIKE, and of REGEXP_EXTRACT with its groups."""

from collections.abc import Sequence

from celc_runtime.values.regexes import RegexError, read_regex

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages import types


def refusal_of_regex(pattern: str) -> str | None:
    """Why RE2 refuses a regular expression; None if it does not."""
    # RE2 itself judges, in the library that also runs the expression. It is imported here because
    # loading it takes longer than compiling most queries.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    except pa.ArrowInvalid as refusal:
        return str(refusal).removeprefix("Invalid regular expression: ")
    return None


def has_group(operands: Sequence[core.Expression], found: Diagnostics) -> bool:
    """Whether a regular expression is one that all routes read alike, and has the group that is
    asked for; reports where not."""
    _, regex, *number = operands
    pattern, group = _value(regex), _value(number[0]) if number else 1
    if pattern is None:
        return True
    reason = refusal_of_regex(str(pattern))
    if reason is not None:
        found.add(types.invalid_regex(reason, regex.span))
        return False
    try:
        groups = read_regex(str(pattern)).groups
    except RegexError as problem:
        found.add(messages.regex_of_one_library(str(problem), regex.span))
        return False
    if group is None or 0 <= int(str(group)) <= groups:
        return True
    found.add(messages.no_such_group(groups, number[0].span if number else regex.span))
    return False


def _value(operand: core.Expression) -> object:
    assert isinstance(operand, core.Constant)
    return operand.value
