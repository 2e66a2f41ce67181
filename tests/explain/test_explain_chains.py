"""`celc explain` of queries over queries: levels, names and drawings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from golden_files import compare
from places import TESTS

from celc.interfaces.cli import main

_FOLDER = TESTS / "explain" / "chains"
_CHAIN = _FOLDER / "peaks.cel"


def _explained(capsys: Any, *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("levels.txt", ["--stage", "chain"]),
        ("one.txt", ["--stage", "chain", "--query", "swings"]),
        ("levels.dot", ["--stage", "chain", "--format", "dot"]),
        ("one.dot", ["--stage", "chain", "--format", "dot", "--query", "swings"]),
    ],
)
def test_a_chain_as_reviewed(name: str, arguments: list[str], update: bool, capsys: Any) -> None:
    compare(_FOLDER / name, _explained(capsys, _CHAIN, *arguments), update)


def test_every_golden_is_used() -> None:
    names = {path.name for path in _FOLDER.iterdir()}
    assert names == {"peaks.cel", "levels.txt", "one.txt", "levels.dot", "one.dot"}


def test_the_formula_ends_with_the_names_of_the_chain(capsys: Any) -> None:
    text = _explained(capsys, _CHAIN, "--query", "peaks")
    assert text.split("\nchain:\n")[1].splitlines() == [
        "  peaks",
        "    rises",
        "      stream Quotes",
        "    swings",
        "      rises (above)",
        "      falls",
        "        stream Quotes",
        "    stream News",
    ]


def test_a_query_is_shown_once_however_many_ways_lead_to_it(tmp_path: Path, capsys: Any) -> None:
    """Each query reads the two before it: the ways grow like Fibonacci's numbers."""
    texts = ["CREATE STREAM S { EVENT A { ts: LONG } }"]
    texts += [f"QUERY q{n}: SELECT COUNT(x) AS n FROM S WHERE A AS x" for n in (0, 1)]
    texts += [
        f"QUERY q{n}: SELECT COUNT(x) AS n FROM q{n - 1}, q{n - 2} WHERE q{n - 1} AS x ; q{n - 2}"
        for n in range(2, 9)
    ]
    source = tmp_path / "q.cel"
    source.write_text("\n".join(texts))
    names = _explained(capsys, source, "--query", "q8", "--order-by", "ts").split("\nchain:\n")[1]
    assert len(names.splitlines()) == 9 + 6 + 2
    levels = _explained(capsys, source, "--stage", "chain", "--order-by", "ts")
    assert levels.count("query q") == 9
    assert [line for line in levels.splitlines() if line.startswith("level")][-1] == "level 8"


def test_names_cannot_leave_their_quotes(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "q.cel"
    source.write_text(
        'CREATE STREAM `S"]` { EVENT `A\\` { id: INT } }\n'
        'QUERY `q"]`: SELECT COUNT(x) AS `n"` FROM `S"]` WHERE `A\\` AS x'
    )
    text = _explained(capsys, source, "--stage", "chain", "--format", "dot")
    assert r'"stream S\"]" -> "query q\"]" [label="A\\"];' in text
    assert r'"query q\"]" [label="q\"]\nrows: n\" LONG"];' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_svg(capsys: Any) -> None:
    text = _explained(capsys, _CHAIN, "--stage", "chain", "--format", "svg")
    assert text.rstrip().endswith("</svg>")
    assert "swings" in text
