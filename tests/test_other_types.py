"""`EVENT OTHER { }`: the events of the types that a declaration does not name.

A table says the same with a type `Rest` in place of all types that are not declared, and a query
with `PROJECT[](Rest)` in place of OTHER. So the answers are compared with those of that query, all
of whose parts the reference knows.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventWarning

import celc
from celc.interfaces.cli.command import main

DECLARED = "id: LONG, ts: TIMESTAMP"
OTHER = f"""CREATE STREAM S {{
  EVENT A {{ {DECLARED}, v: LONG, day: DATE = CAST(ts AS DATE) }},
  EVENT B {{ {DECLARED}, day: DATE = CAST(ts AS DATE), w: LONG }},
  EVENT OTHER {{ }}
}}
"""
NAMED = OTHER.replace("OTHER { }", f"Rest {{ {DECLARED}, day: DATE = CAST(ts AS DATE) }}")

FORMULAS = [
    "A : B",
    "A : OTHER : B",
    "(A AS a ; OTHER ; B AS b) FILTER a.v < b.w",
    "(A OR OTHER) AS x : B",
    "A ; !OTHER ; B",
    "B : NOT(A) : OTHER",
    "OTHER+ : A",
    "(A ; B) UNLESS (OTHER ; OTHER)",
    "((A OR B) AS x ; OTHER AS y) FILTER x IS B",
    "STRICT(A ; OTHER ; B)",
]
CLAUSES = [
    "",
    "PARTITION BY id",
    "PARTITION BY id WITHIN 4 EVENTS",
    "PARTITION BY day WITHIN 90 MINUTES [ts]",
    "WITHIN 90 MINUTES [ts] CONSUME BY ANY",
]


def _table(rng: random.Random, rows: int = 40) -> pa.Table:
    names = [rng.choice(["A", "B", "x", "y z", "OTHER"]) for _ in range(rows)]
    times = [1_782_000_000 + 1800 * row for row in range(rows)]
    return pa.table(
        {
            "type": names,
            "id": [rng.randrange(3) for _ in range(rows)],
            "ts": pa.array(times).cast(pa.timestamp("s")),
            "v": [rng.randrange(5) for _ in range(rows)],
            "w": [rng.randrange(5) for _ in range(rows)],
        }
    )


def _named(table: pa.Table) -> pa.Table:
    names = [one if one in ("A", "B") else "Rest" for one in table.column("type").to_pylist()]
    return table.set_column(0, "type", pa.array(names))


def _both(
    formula: str, clauses: str, select: str = "*", ties: str | None = None
) -> tuple[celc.Matcher, celc.Matcher]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        query = f"SELECT {select} FROM S WHERE {formula} {clauses}"
        named = query.replace("OTHER", "PROJECT[](Rest)")
        found = celc.compile(OTHER + query, order_by="ts", ties=ties)
        return found, celc.compile(NAMED + named, order_by="ts", ties=ties)


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "select", ["FIRST *", "LAST *", "TOTAL COUNT(*) AS n", "COLLAPSED *", "MAX *"]
)
def test_other_answers_are_those_of_the_named_type(select: str) -> None:
    for number, formula in enumerate(FORMULAS):
        ties = "simultaneous" if number % 2 and select[:5] in ("TOTAL", "COLLA") else None
        clauses = ("WITHIN 3 HOURS [ts]", "PARTITION BY id WITHIN 9 HOURS [ts]")[number % 3 == 0]
        if "STRICT" in formula and ties:
            continue
        found, wanted = _both(formula, clauses, select, ties)
        table = _table(random.Random(number))
        assert _rows(found.match_table(table)) == _rows(wanted.match_table(_named(table)))


def test_rules_meet_them() -> None:
    query = """SELECT * FROM S FOR EACH rule
WHERE (A AS a : OTHER ; B) FILTER a.v > rule.k WITHIN 6 HOURS [ts]"""
    found = celc.compile(f"PARAMETERS rule {{ k: LONG }}\n{OTHER}{query}")
    named = query.replace("OTHER", "PROJECT[](Rest)")
    wanted = celc.compile(f"PARAMETERS rule {{ k: LONG }}\n{NAMED}{named}")
    table, rules = _table(random.Random(5)), pa.table({"k": [1, 3]})
    rows = _rows(wanted.match_table(_named(table), rule=rules))
    assert rows
    assert _rows(found.match_table(table, rule=rules)) == rows


@pytest.mark.each(3)
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.filterwarnings("error::celc_runtime.EventWarning")
def test_it_is_a_type_for_all_others(formula: str) -> None:
    for number, clauses in enumerate(CLAUSES):
        found, wanted = _both(formula, clauses)
        table = _table(random.Random(number))
        rows = _rows(wanted.match_table(_named(table)))
        coded = table.set_column(0, "type", table.column("type").dictionary_encode())
        assert _rows(found.match_table(table)) == rows
        assert _rows(found.match_table(coded)) == rows
        assert _rows(found.match_table(table.to_pandas())) == rows
        for form in (pa.large_string(), pa.string_view()):
            texts = table.set_column(0, "type", table.column("type").cast(form))
            assert _rows(found.match_table(texts)) == rows
        assert _rows(found.match_all_table(table)["query"]) == rows
        if "PARTITION" not in clauses:
            pieces = (batch for place in (0, 17) for batch in table[place:][:17].to_batches())
            cut = _rows(wanted.match_table(_named(table[:34])))
            assert (
                _rows(pa.Table.from_batches(found.match_arrow(pieces), found.OUTPUT_SCHEMA)) == cut
            )


def test_two_streams_tell_their_others_apart() -> None:
    text = """CREATE STREAM S { EVENT A { v: LONG }, EVENT OTHER { } }
CREATE STREAM T { EVENT A { v: LONG }, EVENT B { v: LONG } }
SELECT x FROM S, T WHERE (S>A OR T>A OR T>B) AS x : S>OTHER"""
    table = pa.table(
        {
            "stream": ["S", "S", "T", "S", "T", "S"],
            "type": ["A", "B", "B", "x", "x", "x"],
            "v": [1, 2, 3, 4, 5, 6],
        }
    )
    with pytest.warns(EventWarning, match=r"1 of the rows have a type .* 'T>x' \(1"):
        found = celc.compile(text).match_table(table).column("x").to_pylist()
    assert found == [[{"pos": 0, "v": 1}], [{"pos": 2, "v": 3}]]


def test_other_with_attributes_is_a_type_of_that_name() -> None:
    text = "CREATE STREAM S { EVENT A { v: LONG }, EVENT OTHER { v: LONG } }\n"
    query = celc.compile(text + "SELECT OTHER FROM S WHERE A ; OTHER")
    table = pa.table({"type": ["A", "OTHER", "x"], "v": [1, 2, 3]})
    with pytest.warns(EventWarning, match="'x'"):
        (row,) = query.match_table(table).to_pylist()
    assert row["OTHER"] == [{"pos": 1, "v": 2}]


def test_a_run_reads_them(tmp_path: Any, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    text = "SELECT NONE FROM S WHERE A : OTHER : B PARTITION BY id WITHIN 3 HOURS [ts]"
    (tmp_path / "q.cel").write_text(OTHER + text)
    rows = [f"{name},1,2026-07-01 1{place}:00:00,1,1\n" for place, name in enumerate("AxBAB")]
    (tmp_path / "e.csv").write_text("kind,id,ts,v,w\n" + "".join(rows))
    assert main(["run", "q.cel", "e.csv", "--type-column", "kind", "--format", "rows"]) == 0
    told = capsys.readouterr()
    assert (told.out.count("\n"), told.err) == (1, "")
    assert '"start_pos": 0, "end_pos": 2' in told.out
