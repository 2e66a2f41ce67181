"""The table of rules in a module: rows of constants, by the query whose rows they are."""

from collections.abc import Mapping

from celc_runtime.plan.frozen import frozen

from celc.codegen.text.escape import string_literal
from celc.codegen.text.layout import AS_IT_IS

_INDENT = " " * 4


@frozen
class Rules:
    """The rules that are rows of one query FOR EACH: its columns, the first of which has their
    names, and a row for each."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


def rules_text(rules: Mapping[str, Rules]) -> str:
    """The part of a module with the tables: the first line of each has its columns."""
    lines = [AS_IT_IS + "# The rules of each shape: its columns, then the constants of each rule."]
    lines.append("RULES = {")
    for query, of_query in rules.items():
        lines.append(f"{_INDENT}{string_literal(query)}: (")
        lines += (f"{_INDENT * 2}{_row(row)}," for row in (of_query.columns, *of_query.rows))
        lines.append(f"{_INDENT}),")
    return "\n".join((*lines, "}", "# fmt: on", "", ""))


def _row(values: tuple[str | int | float, ...]) -> str:
    shown = (string_literal(one) if isinstance(one, str) else repr(one) for one in values)
    return f"({', '.join(shown)})"
