"""The text of a value makes the same value, whatever texts and numbers it holds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from celc_runtime.plan.conditions import TextCondition
from celc_runtime.plan.expressions import Arithmetic, Computed, Constant
from celc_runtime.plan.plan import Kind, Label, PerStart, Window
from celc_runtime.plan.strategy import BranchFree, Remembers
from celc_runtime.plan.totals import TotalItem, TotalOf, Totals

from celc.codegen.text.emit import emit
from celc.codegen.text.imports import Imports
from celc.plan.code import code

_NASTY = ["", "a\nb", "'\"\\", "\ud800", "é\u2028", "#{% x %}", 'end"""']


def _made(value: object) -> Any:
    imports = Imports()
    text = emit(value, imports)
    assert text.isascii()
    names: dict[str, Any] = {}
    exec("\n".join(imports.lines()), names)
    return eval(text, names)


@pytest.mark.parametrize("text", _NASTY)
def test_texts(text: str) -> None:
    assert _made(Constant(text, "STRING")) == Constant(text, "STRING")
    long = "\n".join([text] * 50)
    assert _made(TextCondition("rlike", long, (long, text))).operands == (long, text)


@pytest.mark.parametrize(
    "value", [0, -1, 2**63, 1.5, -0.0, 1e300, math.inf, -math.inf, True, False, None]
)
def test_constants(value: float | bool | None) -> None:
    made = _made(Constant(value, "DOUBLE")).value
    assert repr(made) == repr(value)


def test_nan() -> None:
    assert math.isnan(_made(Constant(math.nan, "DOUBLE")).value)


@pytest.mark.parametrize(
    "value",
    [
        Window("EVENTS", 10, None),
        Window("VALUE", 1.5, "v", begin="#start"),
        Label("x", (), last=True),
        PerStart("FIRST", disjoint=True, limit=1),
        Remembers(ranks=("a",), symbols=True),
        Totals((TotalItem("n", "LONG", TotalOf("COUNT", "x", read="INT")),), 60_000_000),
        Computed(1, "n", "LONG", Arithmetic("+", Constant(1, "LONG"), Constant(2, "LONG"))),
        (),
        ((1,), ("a", None)),
    ],
)
def test_a_text_makes_the_value(value: object) -> None:
    assert _made(value) == value


def test_fields_as_by_default_are_left_out() -> None:
    assert emit(Window("EVENTS", 10, None), Imports()) == 'Window("EVENTS", 10, None)'
    assert emit(Remembers(), Imports()) == "Remembers()"
    assert emit(TotalOf("COUNT"), Imports()) == 'TotalOf("COUNT")'


def test_a_number_is_no_truth() -> None:
    assert emit(BranchFree(code("f"), piles=1), Imports()) == "BranchFree(f, piles=1)"
    kind = replace(Kind((), starts=True), starts=1)  # type: ignore[arg-type]
    assert emit(kind, Imports()) == "Kind((), 1)"


def test_very_many_texts_are_one() -> None:
    texts = tuple(f"text {number}" for number in range(2000))
    condition = TextCondition("in", "a", texts)
    assert _made(condition) == condition
    assert emit(condition, Imports()).count('"') < 10


def test_what_is_no_data_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no data"):
        emit({1}, Imports())


def test_two_classes_of_one_name_are_a_mistake() -> None:
    imports = Imports()
    imports.call_of(Window)
    with pytest.raises(AssertionError, match="one name"):
        imports.call_of(type("Window", (), {}))
