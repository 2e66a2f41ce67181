"""`celc compile --by-shape`: rules that differ in constants are rows of one query, and files with
mistakes are left out with `--keep-going`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted

from celc import CelError, Matcher
from celc.diagnostics.source import Source
from celc.driver import by_shape
from celc.driver.by_shape import compile_by_shape
from celc.driver.pipeline import compile_source, compiled_file
from celc.driver.shapes import Row, shape_of
from celc.interfaces.cli import main
from celc.options import Options
from celc.parse.parser import parse_with_tokens

_STREAM = "CREATE STREAM S { EVENT A { id: INT, name: STRING, rate: DOUBLE, ts: LONG } }\n"
_EVENTS = pa.table(
    {
        "id": pa.array([1, 2, 1, 3], pa.int32()),
        "name": ["p", "q", "q", "p"],
        "rate": [0.5, 1.0, 2.0, 1.0],
        "ts": [1, 2, 3, 4],
    }
)


def _rule(name: str, condition: str, pattern: str = "A AS x ; A AS y") -> Source:
    text = f"{_STREAM}QUERY {name}: SELECT x, y FROM S\nWHERE ({pattern})\nFILTER {condition}\n"
    return Source(f"{name}.cel", text)


_RULES = [
    _rule("one", "x.id = 1 AND y.name = 'q'"),
    _rule("two", "x.id = 2 AND y.name = 'q' -- as one"),
    _rule("three", "x.id = 1 AND\n  y.name = 'p'"),
    _rule("alone", "x.rate < y.rate"),
    _rule("other", "x.id = 1 AND y.id = 1"),
]


def _written(folder: Path, rules: list[Source]) -> None:
    (folder / "rules").mkdir()
    for rule in rules:
        (folder / "rules" / rule.name).write_text(rule.text)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("x.id = -3 AND 2 < y.id", (-3, 2)),
        ("x.id IN (1, 2, 1)", (1, 2)),
        ("x.id BETWEEN 1 AND 1", (1,)),
        ("x.id = 1 AND y.ts = 1", (1, 1)),
        ("x.name LIKE 'p%' AND x.name <> 'it''s'", ("p%", "it's")),
        ("x.rate > 1 AND y.rate > 2.5", (1.0, 2.5)),
        ("x.id + 1 = 2 AND x.rate > y.rate", None),
        ("x.id = 3000000000", None),
    ],
)
def test_constants_that_attributes_are_compared_with(condition: str, values: Any) -> None:
    rule = _rule("r", condition)
    found = shape_of(rule, *parse_with_tokens(rule), "r")
    assert (None if found is None else found[1]) == (None if values is None else Row("r", values))


def test_rules_of_one_shape_are_rows_of_one_query() -> None:
    compilation = compile_by_shape(_RULES, Options(("ts",)))
    assert [len(one.rows) for one in compilation.rules.values()] == [3, 1]
    parts = compilation.module_parts("celc compile")
    with interpreted():
        together = Matcher(parts)
        alone = [
            Matcher(compile_source(rule, Options(("ts",))).module_parts("")) for rule in _RULES
        ]
    assert list(together.queries) == ["one", "two", "three", "other", "alone"]
    answers = together._module.match_all_table(_EVENTS)
    for matcher in alone:
        (query,) = matcher.queries.values()
        expected = query.match_table(_EVENTS)
        assert answers[query.name].equals(expected)
        assert together.queries[query.name].match_table(_EVENTS).equals(expected)
        assert together._module.rows(answers, query.name) is answers[query.name]
    assert [answers[name].num_rows for name in answers] == [2, 1, 2, 1, 4]
    with pytest.raises(AttributeError, match="has no 'four'"):
        _ = together._module.four


def test_a_shape_does_not_depend_on_other_rules_or_on_layout() -> None:
    names = [
        next(iter(compile_by_shape(rules, Options(("ts",))).rules))
        for rules in (_RULES, [_RULES[1]], [_RULES[2]])
    ]
    assert len(set(names)) == 1


def test_rules_of_a_shape_that_for_each_refuses_stay_alone(monkeypatch: Any) -> None:
    def refused(source: Source, *rest: Any, **more: Any) -> Any:
        if source.name.startswith("shape_"):
            raise CelError(source, ())
        return compiled_file(source, *rest, **more)

    monkeypatch.setattr(by_shape, "compiled_file", refused)
    compilation = compile_by_shape(_RULES, Options(("ts",)))
    assert compilation.names == ("one", "two", "three", "alone", "other")
    assert not compilation.rules


def test_files_with_mistakes_are_left_out(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [_rule("bad", "x.nam = 'q'"), _rule("worse", "x.id = 'q'")]
    again = _rule("again", "x.id = 4 AND y.name = 'q'").text.replace("again", "one")
    _written(tmp_path, [*_RULES, *wrong, Source("z.cel", again)])
    for way in ([], ["--by-shape"]):
        output = f"rules{len(way)}_udf.py"
        command = ["compile", "rules", "-o", output, "--order-by", "ts", *way]
        assert main(command) == 1
        assert not (tmp_path / output).exists()
        all_errors = capsys.readouterr().err
        assert all_errors.endswith("3 errors\n")
        assert main([*command, "--keep-going"]) == 1
        told = capsys.readouterr().err
        assert told == f"{all_errors}{output} has the queries of the other 5 files\n"
        assert "rules/bad.cel:3" in told or "rules/bad.cel:4" in told
        assert "one" in (tmp_path / output).read_text()


def test_any_number_of_processes_writes_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    _written(tmp_path, _RULES)
    texts = []
    for processes in ("1", "3"):
        command = ["compile", "rules", "-o", "rules_udf.py", "--order-by", "ts", "--force"]
        assert main([*command, "--by-shape", "--processes", processes]) == 0
        texts.append((tmp_path / "rules_udf.py").read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--by-shape", "--match-id"], "--match-id: rules by shape have no match_id"),
        (["--by-shape", "--near"], "--by-shape is for files of CEL, and not for --near"),
        (["--processes", "2"], "--processes shares files of rules, which --by-shape asks for"),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, capsys: Any, monkeypatch: Any, options: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _written(tmp_path, _RULES[:1])
    assert main(["compile", "rules", "-o", "rules_udf.py", *options]) == 2
    assert told in capsys.readouterr().err


def test_machine_code_is_made_for_shapes_and_not_for_each_rule(
    tmp_path: Path, monkeypatch: Any
) -> None:
    _written(tmp_path, _RULES)
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "rules", "-o", "rules_udf.py", "--by-shape", "--order-by", "ts"]) == 0
    asked: list[str] = []

    def warmed(queries: list[tuple[str, str]], processes: int) -> list[Any]:
        asked.extend(name for _, name in queries)
        return []

    monkeypatch.setattr("celc.interfaces.cli.warm.warm", warmed)
    assert main(["warm", "rules_udf.py"]) == 0
    matcher = Matcher((tmp_path / "rules_udf.py").read_text())
    assert len(asked) < len(matcher.queries) == len(_RULES)
    assert "alone" in asked
