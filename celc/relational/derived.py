"""Derived columns → their expressions of Spark SQL, over the columns of the input.

Some functions have their operand several times in their text. So a value whose text is long is
bound to a name, `GET(TRANSFORM(ARRAY(value), name -> …), 0)`, or the text would grow exponentially
with the depth of an expression. Spark computes such a value once. A short one is written out,
because Spark's optimizer and its code know nothing of lambdas.
"""

from __future__ import annotations

from celc_runtime.plan.names import unused_name
from sqlglot import exp

from celc.core.formula import AttributeValue, Derived, Expression
from celc.core.traversal import nodes_of
from celc.relational.expressions import Writer
from celc.relational.functions import typed

_LONGEST = 1500  # characters of a value that is written out


def sql_of(derived: Derived, *, by_stream: bool) -> str:
    """The expression of a derived column. It has no table names. by_stream: types are distinguished
    by their stream as well."""
    read = [one.attribute for one in nodes_of(derived.value) if isinstance(one, AttributeValue)]
    writer = _Binding(read, by_stream=by_stream)
    text = typed(derived.value, writer).sql("spark")
    for value, name in reversed(writer.bound.items()):
        text = value if text == name else f"GET(TRANSFORM(ARRAY({value}), {name} -> {text}), 0)"
    return text


class _Binding(Writer):
    """Writes expressions; `bound` are the texts of values with their names, inner before outer."""

    binds = True

    def __init__(self, read: list[str], *, by_stream: bool) -> None:
        super().__init__("spark", by_stream=by_stream, alone="")
        self._read = read
        self.bound: dict[str, str] = {}

    def value(self, node: Expression) -> exp.Expr:
        return self._short(super().value(node))

    def micros(self, node: Expression) -> exp.Expr:
        return self._short(super().micros(node))

    def _short(self, value: exp.Expr) -> exp.Expr:
        text = value.sql("spark")
        if len(text) <= _LONGEST:
            return value
        if text not in self.bound:
            self.bound[text] = unused_name(f"value_{len(self.bound)}", self._read)
        return exp.Var(this=self.bound[text])
