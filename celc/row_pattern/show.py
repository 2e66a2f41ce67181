"""Conditions and values of MATCH_RECOGNIZE as text, for comments in generated code.

They are shown as they are computed, and not as the query writes them: NOT stands at the comparisons
alone, and a row at a constant distance is PREV or NEXT.
"""

from dataclasses import replace

from celc.core import formula as core
from celc.core.show import show_expression, show_truth
from celc.core.traversal import truth_with_terms, with_terms
from celc.resolve.types.literals import MICROSECONDS
from celc.row_pattern import core as rows


class Show:
    """Shows the expressions of a query."""

    def __init__(self, query: rows.Query) -> None:
        self._query = query

    def truth(self, truth: core.Truth) -> str:
        """A condition."""
        return show_truth(truth_with_terms(truth, self._named))

    def value(self, node: core.Expression) -> str:
        """A value."""
        return show_expression(self._named(node))

    def variables(self, variables: core.Variables | None) -> str:
        """The names of pattern variables, joined by "or"; None: all variables."""
        if variables is None:
            return "all variables"
        return " or ".join(self._query.variables[one] for one in sorted(variables))

    def _named(self, node: core.Expression) -> core.Expression:
        """The expression with a name in place of each part that CEL does not have.

        So `core.show` can show the rest. The name is the text of the part in MATCH_RECOGNIZE.
        """
        match node:
            case core.ColumnAt():
                text = self._at(node.row, self._query.columns[node.column].name)
            case core.LabelAt():
                text = self._label(node.row)
            case core.MatchNumber():
                text = "MATCH_NUMBER()"
            case core.AggregateOfRows():
                text = self._aggregate(node)
            case core.Existing():
                return self._named(node.operand)
            case core.TimeDifference():
                units = {length: unit for unit, length in MICROSECONDS.items()}
                start, end = self.value(node.start), self.value(node.end)
                text = f"TIMESTAMPDIFF({units[node.unit]}, {start}, {end})"
            case core.Asked():
                text = f"({self.truth(node.condition)})"
            case core.Conditional():
                branches = (
                    f"WHEN {self.truth(asked)} THEN {self.value(then)}"
                    for asked, then in node.branches
                )
                text = f"CASE {' '.join(branches)} ELSE {self.value(node.otherwise)} END"
            case _:
                return with_terms(node, self._named)
        return core.Variable(text, node.type, node.span)

    def _aggregate(self, node: core.AggregateOfRows) -> str:
        """`SUM(a.price)` and the like. Columns inside stand without FIRST and LAST."""
        row = core.Navigation(node.variables, first=False, offset=0, shift=0, final=False)

        def of_row(one: core.Expression) -> core.Expression:
            if isinstance(one, core.ColumnAt | core.LabelAt):
                return replace(one, row=row)
            return with_terms(one, of_row)

        argument = (
            self._of(row, "*") if node.argument is None else self.value(of_row(node.argument))
        )
        argument = f"DISTINCT {argument}" if node.distinct else argument
        keys = ", ".join(
            self.value(of_row(one.value))
            + (" DESC" if one.descending else "")
            + (
                ""
                if one.nulls_first is None
                else f" NULLS {'FIRST' if one.nulls_first else 'LAST'}"
            )
            for one in node.order
        )
        argument += f" ORDER BY {keys}" if keys else ""
        text = f"{'FINAL ' if node.final else ''}{node.function}({argument})"
        return (
            text if node.kept is None else f"{text} FILTER (WHERE {self.value(of_row(node.kept))})"
        )

    def _label(self, row: core.Row) -> str:
        """`CLASSIFIER()` of a row."""
        if isinstance(row, core.Navigation) and row.variables is not None:
            return self._moved(row, f"CLASSIFIER({self.variables(row.variables)})")
        return self._at(row, "CLASSIFIER()")

    def _at(self, row: core.Row, what: str) -> str:
        """A value at a row, such as `PREV(LAST(a.price))`."""
        return self._moved(row, self._of(row, what))

    def _of(self, row: core.Row, what: str) -> str:
        """A column with the variables whose rows have it: `a.price`, `(a or b).price`."""
        if not isinstance(row, core.Navigation) or row.variables is None:
            return what
        of = self.variables(row.variables)
        return f"{of}.{what}" if len(row.variables) == 1 else f"({of}).{what}"

    def _moved(self, row: core.Row, what: str) -> str:
        """A text inside FIRST or LAST, and inside PREV or NEXT, as the row asks for them."""
        match row:
            case core.Argument():
                return what
            case core.Here():
                return _shifted(what, row.shift)
            case core.Navigation():
                if row.first or row.offset or row.final:
                    final = "FINAL " if row.final else ""
                    offset = f", {row.offset}" if row.offset else ""
                    what = f"{final}{'FIRST' if row.first else 'LAST'}({what}{offset})"
                return _shifted(what, row.shift)


def _shifted(what: str, shift: int) -> str:
    if not shift:
        return what
    distance = "" if abs(shift) == 1 else f", {abs(shift)}"
    return f"{'NEXT' if shift > 0 else 'PREV'}({what}{distance})"
