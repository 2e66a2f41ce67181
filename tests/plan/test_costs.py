"""Warnings about the way a query is run: messages as golden files, under tests/errors/costs."""

from __future__ import annotations

import pytest
from golden_files import compare
from places import TESTS

from celc.diagnostics.errors import render_all
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options


@pytest.mark.parametrize("code", ["totals-by-listing", "by-definition"])
def test_warnings(request: pytest.FixtureRequest, code: str) -> None:
    path = TESTS / "errors" / "costs" / f"{code}.cel"
    source = Source(path.name, path.read_text(encoding="utf-8"))
    found = compile_source(source, Options(order_by=("ts",)))
    rendered = render_all(source, found.warnings) + "\n"
    compare(path.with_suffix(".expected"), rendered, request.config.getoption("--update-golden"))
