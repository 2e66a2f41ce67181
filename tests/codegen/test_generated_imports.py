"""A generated module imports what it uses and nothing else, whatever its texts look like."""

from __future__ import annotations

import builtins
import importlib
import symtable
import sys
from pathlib import Path

import pytest
from cases_io import case_stems, load_cases
from places import ROOT

import celc.codegen.text.layout
from celc.codegen.text.imports import MODULE_OF, Imports
from celc.codegen.text.layout import LINE_LENGTH
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.plan.strategy import EVERY_UPDATE, GENERAL_ENGINE, Update

sys.path.append(str(ROOT / "benchmarks"))

from families import FAMILIES

_GENERATED = ROOT / "generated"


@pytest.fixture
def _as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules as templates leave them: black takes its time, and imports nothing."""
    monkeypatch.setattr(celc.codegen.text.layout, "formatted", "".join)


def _module(
    query: str,
    updates: frozenset[type[Update]] = EVERY_UPDATE,
    options: Options = Options(),  # noqa: B008  frozen
) -> str:
    source = Source("query.cel", query)
    compilation = compile_source(source, options, updates=updates)
    return compilation.module_text("celc compile query.cel")


def _modules(query: str) -> list[str]:
    """The module of a query, as code of its own and for the general engine."""
    return [_module(query), _module(query, GENERAL_ENGINE)]


def _imported(text: str) -> set[str]:
    return {
        symbol.get_name()
        for symbol in symtable.symtable(text, "module", "exec").get_symbols()
        if symbol.is_imported()
    }


def _used(text: str) -> set[str]:
    """Names of the module that are read in any of its functions, but made nowhere in it."""
    module = symtable.symtable(text, "module", "exec")
    made = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned()}
    made |= {scope.get_name() for scope in module.get_children()}
    read, scopes = set[str](), [module]
    for scope in scopes:
        scopes += scope.get_children()
        read |= {
            symbol.get_name()
            for symbol in scope.get_symbols()
            if symbol.is_referenced() and (scope is module or symbol.is_global())
        }
    return read - made - set(dir(builtins))


def _assert_exact(text: str) -> None:
    assert _imported(text) == _used(text)


@pytest.mark.parametrize("path", sorted(_GENERATED.glob("*.py")), ids=lambda path: path.stem)
def test_imports_of_golden_modules_are_what_they_use(path: Path) -> None:
    _assert_exact(path.read_text("utf-8"))


@pytest.mark.each(2)
@pytest.mark.usefixtures("_as_written")
@pytest.mark.parametrize("each", [12, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stem", case_stems())
def test_imports_of_the_cases_are_what_they_use(stem: str, each: int) -> None:
    """Of each twelfth query; that nothing is missing is seen where all of them are run."""
    calls = dict.fromkeys((case.query, case.order_by, case.ties) for case in load_cases(stem))
    for query, order, ties in [*calls][::each]:
        _assert_exact(_module(query, options=Options(order, ties=ties)))


@pytest.mark.usefixtures("_as_written")
def test_imports_of_queries_that_grow_are_what_they_use() -> None:
    for family in FAMILIES.values():
        for text in _modules(family(20)):
            _assert_exact(text)


@pytest.mark.usefixtures("_as_written")
def test_no_text_of_a_query_is_taken_for_code() -> None:
    bait = " ".join(f" {name}( {name} np.{name}(" for name in MODULE_OF)
    query = f"""
        CREATE STREAM S {{ EVENT A {{ s: STRING, t: STRING }}, EVENT B {{ s: STRING }} }}
        SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.s = '{bait}' AND x.s = y.s
    """
    plain = query.replace(bait, "a")
    for text, other in zip(_modules(query), _modules(plain), strict=True):
        _assert_exact(text)
        assert _imported(text) == _imported(other)


@pytest.mark.usefixtures("_as_written")
def test_what_only_a_null_test_looks_at_is_not_computed() -> None:
    query = """
        CREATE STREAM S { EVENT A { v: INT, w: INT }, EVENT B { v: INT, w: INT } }
        SELECT * FROM S WHERE (A AS x ; B AS y) FILTER (x.v + y.w) IS NULL AND (x.v + 1) IS NULL
    """
    for text in _modules(query):
        _assert_exact(text)
        assert "add_int" not in text


@pytest.mark.parametrize("name", MODULE_OF)
def test_the_runtime_has_what_generated_code_imports(name: str) -> None:
    assert hasattr(importlib.import_module(MODULE_OF[name]), name)


def test_a_name_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        Imports().use("nobody")


def test_imports_are_in_order_and_no_longer_than_a_line() -> None:
    imports = Imports()
    imports.use("np", *reversed(MODULE_OF))
    lines = imports.lines()
    assert lines[:2] == ("import numpy as np", "")
    assert list(lines[2:]) == sorted(lines[2:], key=lambda line: line.split()[1])
    assert max(map(len, lines)) <= LINE_LENGTH
    assert Imports().lines() == ()
