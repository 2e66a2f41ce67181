"""Compiled queries as they were reviewed: the generated modules, and every stage on the way.

`pytest --update-golden` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import black
import lowest
import pytest
from golden_files import compare
from places import ROOT, TESTS

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.interfaces.cli import main
from celc.interfaces.explain import stages as dump
from celc.options import Options

_GENERATED = ROOT / "generated"
_GOLDEN = TESTS / "golden"
_QUERIES = sorted(path.stem for path in _GENERATED.glob("*.cel"))
_ROW_PATTERNS = sorted(path.stem for path in _GENERATED.glob("*.sql"))


_PINS = dict(
    pin.split("==")
    for pin in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]["dev"]
    if pin.startswith(("black", "jinja2", "sqlglot"))
)
_FORMATTED_AS_PINNED = all(version(name) == pin for name, pin in _PINS.items())
"""Whether black and the others that decide the bytes of a module are those of the golden files."""


def _compare_modules(path: Path, text: str, update: bool) -> None:
    """The same bytes; with other versions of black, Jinja or sqlglot the same program."""
    if _FORMATTED_AS_PINNED or update:
        compare(path, text, update)
    else:
        assert _program(text) == _program(path.read_text("utf-8"))


def _program(text: str) -> str:
    """What a module does, without its layout, which reaches into docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Expr(ast.Constant(ast.get_docstring(node)))
    return ast.dump(tree)


def test_the_pins_are_those_of_the_golden_files() -> None:
    assert set(_PINS) == {"black", "jinja2", "sqlglot"}
    users = lowest.claimed()
    # Users can have celc beside packages that need other versions.
    assert not any("==" in requirement for requirement in users)
    assert all(">=" in requirement for requirement in users)


def test_there_are_queries() -> None:
    assert {"q1", "q2", "q3", "q4", "q5", "q6", "alarm"} <= set(_QUERIES)


@pytest.mark.parametrize("name", _QUERIES)
def test_generated_module(name: str, update: bool, tmp_path: Path) -> None:
    made = tmp_path / f"{name}.py"
    assert main(["compile", str(_GENERATED / f"{name}.cel"), "-o", str(made)]) == 0
    _compare_modules(_GENERATED / f"{name}.py", made.read_text("utf-8"), update)


@pytest.mark.parametrize("name", _ROW_PATTERNS)
def test_generated_module_of_row_patterns(name: str, update: bool, tmp_path: Path) -> None:
    source, made = _GENERATED / f"{name}.sql", tmp_path / f"{name}.py"
    assert main(["compile", str(source), "-o", str(made)]) == 0
    _compare_modules(_GENERATED / f"{name}.py", made.read_text("utf-8"), update)
    for stage in ("formula", "cea"):
        shown = tmp_path / stage
        assert main(["explain", str(source), "--stage", stage, "-o", str(shown)]) == 0
        compare(_GOLDEN / name / f"{stage}.txt", shown.read_text("utf-8"), update)


@pytest.mark.each(10)
@pytest.mark.parametrize("name", _QUERIES)
def test_black_decides_the_layout_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So another version of black, or none, makes a module that does the same."""
    text = (_GENERATED / f"{name}.cel").read_text("utf-8")
    formatted = celc.compile(text, name=f"{name}.cel").source
    monkeypatch.setattr(black, "format_str", lambda text, mode: text)
    plain = celc.compile(text, name=f"{name}.cel").source
    assert plain != formatted
    assert _program(plain) == _program(formatted)


@pytest.mark.parametrize("name", _QUERIES)
def test_stages(name: str, update: bool) -> None:
    text = (_GENERATED / f"{name}.cel").read_text("utf-8")
    *_, stages = compile_source(Source(f"{name}.cel", text), Options()).queries
    folder = _GOLDEN / name
    compare(folder / "formula.txt", dump.dump_formula(stages), update)
    compare(folder / "cea.txt", dump.dump_automaton(stages), update)
    compare(folder / "det.txt", dump.dump_deterministic(stages), update)
    compare(folder / "tables.txt", dump.dump_tables(stages), update)


def test_every_golden_is_used() -> None:
    every = sorted([*_QUERIES, *_ROW_PATTERNS])
    assert sorted(path.name for path in _GOLDEN.iterdir()) == every
    assert sorted(path.stem for path in _GENERATED.glob("*.py")) == every


def test_the_papers_iteration_fits_on_two_screens() -> None:
    """What a reader sees of `A+ ; B`, its plan for the runtime included."""
    assert len((_GENERATED / "q4.py").read_text("utf-8").splitlines()) <= 176


@pytest.mark.each(2)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_text_does_not_depend_on_hashing(seed: str, tmp_path: Path) -> None:
    made = tmp_path / "alarm.py"
    subprocess.run(
        [sys.executable, "-m", "celc", "compile", str(_GENERATED / "alarm.cel"), "-o", str(made)],
        check=True,
        env=os.environ | {"PYTHONHASHSEED": seed},
    )
    _compare_modules(_GENERATED / "alarm.py", made.read_text("utf-8"), update=False)
