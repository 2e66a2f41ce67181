"""Names, texts, files and sizes that nobody means well with.

What stands in a query reaches the generated module as string literals and comments only, whatever
it is; what stands in a file or on the command line ends in an answer or in words, never in a trace.
The parser by itself is the matter of `test_parse_hostile`.
"""

from __future__ import annotations

import ast
import json
import random
import time
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines import answers, engines, interpreted, only_query
from reference import difference
from shares import share

import celc
from celc.interfaces.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::celc_runtime.EventWarning")

CPU_LIMIT = 60.0
"""Seconds. Each size here takes up to five on a slow machine, and takes minutes where some work
grows with the square of a list, or never ends. Not a measurement: `test_compile_growth` counts."""

# --- names and texts ------------------------------------------------------------------------------

BENIGN = "plain"
HOSTILE = {
    "single quote": "it's",
    "double quote": 'say "no"',
    "end of a docstring": '"""',
    "other end of a docstring": "'''",
    "code after a docstring": '""" + __import__("os").system("false") + """',
    "backslash": "a\\",
    "backslash and quote": "\\'\\\"",
    "escape": "\\x41\\n\\N{BULLET}",
    "newline": "a\nb",
    "newline and code": "a\nimport os\n",
    "newline and indented code": "a\n    raise SystemExit\n",
    "carriage return": "a\rb",
    "both line ends": "a\r\nb",
    "form feed": "a\fb",
    "vertical tab": "a\vb",
    "tab": "a\tb",
    "other line ends": "a\x1c\x1d\x1e\x85\u2028\u2029b",
    "NUL": "a\0b",
    "terminal escape": "\x1b[31mred\x1b[0m",
    "right-to-left override": "a\u202eb\u202c",
    "bidi isolates": "a\u2066b\u2069",
    "zero width": "a\u200b\u200d\ufeffb",
    "soft hyphen": "a\xadb",
    "Jinja expression": "{{ 7*7 }}",
    "Jinja raw": "{% raw %}{{ x }}{% endraw %}",
    "Jinja comment": "{# gone #}",
    "Jinja statement": "{% for x in range(3) %}x{% endfor %}",
    "format": "{0} {name} %s %(name)s",
    "Python keyword": "class",
    "Python constant": "None",
    "call": "__import__('os')",
    "dunder": "__class__",
    "generated name": "update_1",
    "decorator": "@njit",
    "comment": "# noqa",
    "black's comment": "# fmt: off",
    "type comment": "# type: ignore",
    "coding cookie": "-*- coding: utf-7 -*-",
    "comment of CEL": "-- not /* here",
    "backquote": "a`b",
    "end of an identifier": "` AS y ; `",
    "letters": "ßéÆ日本語",
    "combining": "e\u0301",
    "compatibility": "ﬁ①Ａ",
    "astral": "🔥\U0001d7d8",
    "private use": "\ue000",
    "noncharacter": "\uffff",
    "empty-looking": " ",
    "percent and underscore": "100%_",
    "regular expression": "(a|b)*[",
    "long": "x" * 3000,
}

OF_LAYOUT = {
    *("double quote", "end of a docstring", "other end of a docstring", "backslash and quote"),
    *("newline and indented code", "carriage return", "form feed", "tab", "other line ends", "NUL"),
    *("comment", "black's comment", "type comment", "coding cookie", "letters", "combining"),
    *("astral", "long"),
}
"""Those that black might lay out in its own way: it changes quotes, escapes, comments and line
ends, and measures the width of a text. Black takes most of the time of these tests."""


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _query(piece: str) -> str:
    """A file in which the piece is part of every kind of name, of texts, and of comments."""
    stream, event, number = _name(f"{piece} stream"), _name(f"{piece} type"), _name(f"{piece} nr")
    text, key, label = _name(f"{piece} text"), _name(f"{piece} key"), _name(f"{piece} label")
    value, value2 = _name(f"{piece} value"), _name(f"{piece} value 2")
    pattern = piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"""\
/* {piece.replace("*/", "")} */
CREATE STREAM {stream} {{
  EVENT {event} {{ {key}: STRING, {number}: INT, {text}: STRING }},
  EVENT B {{ {key}: STRING, {number}: INT }}
}}
-- {piece.replace(chr(10), " ")}
QUERY {_name(f"{piece} query")}:
SELECT {label}[{number}, {text}], FIRST({label}.{text}) AS {value}, B, {_text(piece)} AS {value2}
FROM {stream}
WHERE ({stream}>{event} AS {label} ; !(WITHIN[9 [{number}]](B ; B)) ; B)
  FILTER {label}.{text} = {_text(piece)} AND {label}.{text} LIKE {_text(pattern)}
    AND {label}.{text} NOT IN ({_text(piece + "x")}, 'y') AND {label}.{number} >= 1
PARTITION BY {key}
"""


def _events(piece: str) -> list[dict[str, Any]]:
    number, text, key = f"{piece} nr", f"{piece} text", f"{piece} key"
    return [
        {"type": f"{piece} type", key: piece, number: 1, text: piece},
        {"type": f"{piece} type", key: piece, number: 2, text: piece + "x"},
        {"type": f"{piece} type", key: "other", number: 3, text: piece},
        {"type": "B", key: piece, number: 4},
        {"type": f"{piece} stream", key: piece, number: 5},
    ]


def _expected(piece: str) -> list[dict[str, Any]]:
    return [
        {
            "partition": {f"{piece} key": piece},
            "start": 0,
            "end": 2,
            "labels": {f"{piece} label": [0], "B": [2]},
            "values": {f"{piece} value": piece, f"{piece} value 2": piece},
        }
    ]


class _Shape(ast.NodeTransformer):
    """Leaves out of a module what may depend on names: string literals, and the query's text; and
    the conditions that Spark is told of."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_List(self, node: ast.List) -> ast.AST:
        # The lines of a text: a name with a line end makes more of them.
        texts = all(
            isinstance(one, ast.Constant) and isinstance(one.value, str) for one in node.elts
        )
        return ast.List([ast.Constant("")]) if texts else self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        # Which conditions Spark is told of may depend on what their texts consist of.
        return None if node.arg == "relevant" else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        is_text = isinstance(node.targets[0], ast.Name) and node.targets[0].id == "QUERY"
        return ast.Pass() if is_text else self.generic_visit(node)


def _shape(module: str) -> str:
    return ast.dump(_Shape().visit(ast.parse(module)))


def _hidden(text: str) -> list[str]:
    """The characters of a text that control something, or are not shown."""
    categories = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return [c for c in text if c != "\n" and unicodedata.category(c) in categories]


@pytest.fixture(scope="module")
def benign() -> str:
    with interpreted(formatted=True):
        return celc.compile(_query(BENIGN)).source


@pytest.mark.each(5)
@pytest.mark.parametrize("word", HOSTILE)
def test_names_and_texts(word: str, benign: str) -> None:
    """The module differs from one with harmless names in string literals and comments only."""
    piece = HOSTILE[word]
    text = _query(piece)
    with interpreted(formatted=word in OF_LAYOUT):
        matcher = celc.compile(text, name=f"{piece}.cel")
    assert _shape(matcher.source) == _shape(benign)
    assert not _hidden(matcher.source)
    assert text == matcher.QUERY
    query = only_query(matcher)
    assert query.name == f"{piece} query"
    for route, answer in answers(query, _events(piece), random.Random(piece)).items():
        assert not difference(answer, _expected(piece)), route


@cache
def _plain_shapes() -> dict[str, Any]:
    """The shape of each module of two queries with benign names."""
    plain = _query(BENIGN) + "QUERY `plain 2`: SELECT * WHERE B : B\n"
    with interpreted():
        return {engine: _shape(matcher.source) for engine, matcher in engines(plain).items()}


@pytest.mark.each(9)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_general_engine(piece: str) -> None:
    """The other way to lay a module out; two queries, so that names head comments as well."""
    text = _query(piece) + f"QUERY {_name(piece + ' 2')}: SELECT * WHERE B : B\n"
    with interpreted():
        hostile_modules = engines(text)
    for engine, matcher in hostile_modules.items():
        assert _shape(matcher.source) == _plain_shapes()[engine]
        assert not _hidden(matcher.source)
        query = matcher.queries[f"{piece} query"]
        for route, answer in answers(query, _events(piece), random.Random(piece)).items():
            assert not difference(answer, _expected(piece)), f"{engine} {route}"


@pytest.mark.filterwarnings("default::celc_runtime.EventWarning")
@pytest.mark.each(9)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_command_line_with_hostile_names(
    piece: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`celc run` writes names into JSON as they are; nothing else prints them raw."""
    source, events = tmp_path / "q.cel", tmp_path / "e.jsonl"
    source.write_bytes(_query(piece).encode())
    events.write_text("".join(json.dumps(event) + "\n" for event in _events(piece)), "utf-8")
    with interpreted():
        assert main(["run", str(source), str(events), "--format", "json"]) == 0
    output = capsysbinary.readouterr()
    (line,) = map(json.loads, output.out.decode().split("\n")[:-1])
    assert b"1 of the rows have a type that none of its streams declares" in output.err
    assert not _hidden(output.err.decode())
    assert line.pop("query") == f"{piece} query"
    assert [line] == _expected(piece)
    for stage in ("formula", "cea", "det", "tables"):
        assert main(["explain", str(source), "--stage", stage]) == 0
    with interpreted():
        assert main(["run", str(source), str(events), "--query", "other"]) == 2
    assert main(["check", str(source)]) == 0
    output = capsysbinary.readouterr()
    assert not _hidden(output.out.decode())
    assert not _hidden(output.err.decode())


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_messages_show_nothing_raw(piece: str) -> None:
    """An error in each place where a name or a text can be wrong."""
    wrong = f"""\
CREATE STREAM S {{ EVENT A {{ id: INT, name: STRING }} }}
SELECT * FROM {_name(piece)} WHERE A
QUERY two: SELECT * WHERE {_name(piece)} ; A
QUERY three: SELECT * WHERE A FILTER A.{_name(piece)} = 1
QUERY four: SELECT * WHERE A FILTER {_name(piece)}.id = {_text(piece)}
QUERY five: SELECT * WHERE A FILTER A.id = {_text(piece)} OR A.name RLIKE {_text(piece + "(")}
QUERY six: SELECT * WHERE A FILTER {_name(piece)}(A.id) = 1
"""
    diagnostics = celc.check(wrong, name=f"{piece}.cel")
    assert diagnostics
    with pytest.raises(celc.CelError) as caught:
        celc.compile(wrong, name=f"{piece}.cel")
    assert not _hidden(str(caught.value))


@pytest.mark.parametrize("form", [unicodedata.normalize, lambda _, text: text.upper()])
@pytest.mark.parametrize("word", ["\N{LATIN SMALL LIGATURE FI}", "e\u0301", "\uff41", "s", "ß"])
def test_names_that_spark_takes_for_one(form: Callable[[str, str], str], word: str) -> None:
    """Labels equal after normalisation, or but for their case, cannot both be columns."""
    other = form("NFKC", word)
    before = "CREATE STREAM S { EVENT A {} }\nSELECT "
    after = f" FROM S WHERE A AS `{word}` ; A AS `{other}`"
    both, one = f"{before}*{after}", f"{before}`{word}`{after}"
    codes = {diagnostic.code for diagnostic in celc.check(both)}
    assert codes == ({"duplicate-column"} if word != other else {"unsafe-label"})
    assert not any(diagnostic.severity == "error" for diagnostic in celc.check(one))


def test_hostile_names_on_spark(spark: Any) -> None:
    """Column names with what Spark's own notation gives a meaning to.

    Dots and backquotes aside: PySpark's `mapInArrow` itself takes those for parts of a name.
    """
    piece = "a b'c\"d,e:f<g>h(i)\\j;{{ 7*7 }}"
    with interpreted():
        matcher: Any = celc.compile(
            _query(piece).replace("nr`: INT", "nr`: LONG"), order_by=f"{piece} nr", positions=True
        )
    frame = spark.createDataFrame(
        pa.Table.from_pylist([{f"{piece} text": None} | event for event in _events(piece)])
    )
    (row,) = frame.transform(matcher.match).collect()
    assert row[f"{piece} key"] == piece
    assert (row["start_pos"], row["end_pos"]) == (0, 2)
    ((event,),) = (row[f"{piece} label"],)
    assert event[f"{piece} text"] == piece


# --- files ----------------------------------------------------------------------------------------

GOOD = "CREATE STREAM S { EVENT A { id: INT } }\nSELECT * FROM S WHERE A\n"


def _main(*arguments: object) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:
        # How argparse leaves after a wrong command line.
        return end.code if isinstance(end.code, int) else -1


QUERY_FILES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 1, "error"),
    "blank": (b" \n\n", 1, "error"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), 0, ""),
    "CRLF": (GOOD.replace("\n", "\r\n").encode(), 0, ""),
    "UTF-16": (GOOD.encode("utf-16"), 2, "is not UTF-8 text: byte 0 is 0xff"),
    "Latin 1": (GOOD.encode() + b"-- caf\xe9\n", 2, "is not UTF-8 text: byte 70 is 0xe9"),
    "all bytes": (bytes(range(256)) * 4, 2, "is not UTF-8 text"),
    "all of ASCII": (bytes(range(128)) * 4, 1, "bad-character"),
    "a program": (b"\x7fELF\x02\x01\x01" + b"\0" * 500, 1, "bad-character"),
    "more than may be": (GOOD.encode() + b" " * (4 << 20), 2, "is larger than 4 MiB"),
}
LARGE_FILES: dict[str, tuple[bytes, int, str]] = {
    "a megabyte of NUL": (b"\0" * 1_000_000, 1, "bad-character"),
    "a megabyte of words": (b"A " * 500_000, 1, "error"),
    "a megabyte of comments": (GOOD.encode() + b"-- long\n" * 125_000, 0, ""),
}
"""All commands read them alike, and none goes further with the first two."""


@pytest.mark.each(5)
@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((command, name) for command in ("check", "compile", "explain") for name in QUERY_FILES),
        *(("check", name) for name in LARGE_FILES),
        ("compile", "a megabyte of comments"),
    ],
)
def test_query_files(command: str, name: str, tmp_path: Path, capsys: Any) -> None:
    data, code, said = (QUERY_FILES | LARGE_FILES)[name]
    source = tmp_path / "q.cel"
    source.write_bytes(data)
    target = ["-o", tmp_path / "out"] if command != "check" else []
    assert _main(command, source, *target) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert (tmp_path / "out").exists() == (code == 0 and command != "check")


def test_a_query_file_that_is_none(tmp_path: Path, capsys: Any) -> None:
    for path, said in ((tmp_path / "none.cel", "there is no such file"), (tmp_path, "directory")):
        assert _main("explain", path) == 2
        assert said in capsys.readouterr().err
        for arguments in (("compile", path), ("check", path), ("run", path, tmp_path / "e.jsonl")):
            ending = ".cel or .sql" if arguments[0] == "check" else ".cel"
            assert _main(*arguments) == 2
            of_folder = f"no {ending} file" if path == tmp_path else said
            assert of_folder in capsys.readouterr().err


def test_outputs_that_cannot_be_written(tmp_path: Path, capsys: Any) -> None:
    source, events = tmp_path / "q.cel", tmp_path / "e.jsonl"
    source.write_text(GOOD)
    events.write_text('{"type": "A", "id": 1}\n')
    # A folder that is missing, one that is a file, and a target that is a folder.
    for target in (tmp_path / "none" / "out", events / "out", tmp_path):
        options = ["-o", target, "--force"]
        assert _main("compile", source, *options) == 2
        assert _main("explain", source, *options[:2]) == 2
        with interpreted():
            assert _main("run", source, events, "--format", "json", *options) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 3
        assert all(line.startswith(f"celc: {target}") for line in lines)


def test_foreign_files_are_not_overwritten(tmp_path: Path, capsys: Any) -> None:
    source, target = tmp_path / "q.cel", tmp_path / "out.py"
    source.write_text(GOOD)
    for foreign in (b"", b"print('mine')\n", b'"""Matches of a CEL query. ', bytes(range(256))):
        target.write_bytes(foreign)
        assert _main("compile", source, "-o", target) == 2
        assert "use --force" in capsys.readouterr().err
        assert target.read_bytes() == foreign
    assert _main("compile", source, "-o", target, "--force") == 0
    first = target.read_bytes()
    # Its own files it does overwrite; and not where the query is wrong.
    source.write_text(GOOD.replace("WHERE A", "WHERE A ; A"))
    assert _main("compile", source, "-o", target) == 0
    second = target.read_bytes()
    assert second != first
    source.write_text("SELECT")
    assert _main("compile", source, "-o", target) == 1
    assert target.read_bytes() == second


def test_event_files(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "q.cel"
    source.write_text(GOOD.replace(" } }", " }, EVENT B {} }"))
    files = {
        "none.jsonl": (None, "there is no such file"),
        "e.txt": (b"A,1\n", "events are read from files that end in"),
        "e.parquet": (b"no parquet at all", "e.parquet: "),
        "short.parquet": (b"PAR1", "short.parquet: "),
        "e.jsonl": (b'{"type": "A", "id": 1}\n{"type": ', "e.jsonl, line 2: "),
        "other.jsonl": (b'{"type": "A", "id": "one"}\n', "other.jsonl, line 1: "),
        "null.jsonl": (b'{"type": null, "id": 1}\n', "'type' is NULL in row 0"),
        "lacks.jsonl": (b'{"type": "A"}\n', None),
        "e.csv": (b"type,id\nA,1,2\n", "e.csv, line 2: "),
        "binary.csv": (bytes(range(256)), "binary.csv: "),
        "lacks.csv": (b"type\nA\n", "cannot do without the column 'id', which is missing"),
        "untyped.csv": (b"id\n1\n", "cannot do without the column 'type', which is missing"),
    }
    for name, (data, said) in files.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with interpreted():
            code = _main("run", source, tmp_path / name, "--format", "json")
        error = capsys.readouterr().err
        if said is not None:
            assert code == 2, name
            assert said in error, name
        assert "Traceback" not in error
    (tmp_path / "folder.jsonl").mkdir()
    assert _main("run", source, tmp_path / "folder.jsonl") == 2


def test_wrong_command_lines(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "q.cel"
    source.write_text(GOOD)
    for arguments in (
        [],
        ["compile"],
        ["compile", source, tmp_path / "other.cel"],
        ["completion", "tcl"],
        ["unknown", source],
        ["check", source, "--max-states", "many"],
        ["check", source, "--order-by", "id,,id"],
        ["check", source, "--order-by", ""],
        ["explain", source, "--stage", "end"],
        ["explain", source, "--stage", "code", "--format", "dot"],
        ["explain", source, "--query", "none"],
        ["run", source],
    ):
        assert _main(*arguments) == 2, arguments
        assert capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ['quo"""te.cel', "back\\slash.cel", "new\nline.cel", "{{ 7*7 }}.cel", "bidi\u202e.cel"]
)
def test_the_header_names_the_file_without_its_folders(name: str, tmp_path: Path) -> None:
    """So that modules are the same wherever they are compiled, and hold nothing raw."""
    modules = []
    for folder in (tmp_path / "one", tmp_path / 'two """ \n'):
        folder.mkdir()
        (folder / name).write_text(GOOD, "utf-8")
        assert _main("compile", folder / name, "-o", folder / "out.py") == 0
        modules.append((folder / "out.py").read_text("utf-8"))
    assert modules[0] == modules[1]
    assert not _hidden(modules[0])
    header = ast.get_docstring(ast.parse(modules[0]))
    assert header is not None
    assert header.splitlines()[-1].strip().startswith("celc compile")
    assert str(tmp_path) not in modules[0]
    assert len(header.splitlines()) == 3


# --- sizes ----------------------------------------------------------------------------------------

WIDE = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: TIMESTAMP }
}
SELECT * FROM S WHERE """
MANY = 3_000
LISTED = 100_000
FEWER_LISTED = 20_000

SIZES: dict[str, tuple[str, str | None]] = {
    # What is said of it; None: it is fine.
    "parentheses": ("(" * 10_000 + "A" + ")" * 10_000, None),
    "parentheses around a condition": (
        "A FILTER " + "(" * 10_000 + "A.id > 1" + ")" * 10_000,
        None,
    ),
    "parentheses around a value": (
        "A FILTER " + "(" * 10_000 + "A.id" + ")" * 10_000 + " > 1",
        None,
    ),
    "open parentheses": ("(" * 10_000 + "A", "unclosed-bracket"),
    "NOT NOT": ("A FILTER " + "NOT " * 10_000 + "A.id > 1", "too-deep"),
    "minus minus": ("A FILTER A.id > " + "- " * 10_000 + "1", "too-deep"),
    "+ + +": ("A" + "+" * 10_000, "too-deep"),
    "(((A)+)+)+": ("(" * 3_000 + "A" + ")+" * 3_000, "too-deep"),
    "AS AS AS": ("A" + "".join(f" AS x{n}" for n in range(10_000)), "too-deep"),
    "sequence": (" ; ".join(["A", "B"] * (MANY // 2)), "too-many-states"),
    "labelled sequence": (" ; ".join(f"A AS x{n}" for n in range(MANY)), "too-many-states"),
    "contiguous sequence": (" : ".join(["A"] * MANY), "too-many-states"),
    "sequence of choices": (" ; ".join(["(A OR B)"] * (MANY * 5 // 6)), "too-many-states"),
    "OR": (" OR ".join(["A", "B"] * (MANY // 2)), None),
    "labelled OR": (" OR ".join(f"A AS x{n}" for n in range(MANY)), None),
    "OR of sequences": (" OR ".join(["(A ; B)"] * (MANY // 2)), None),
    "OR of conditions": ("A FILTER " + " OR ".join(f"A.id = {n}" for n in range(MANY)), None),
    "OR of orders": ("A FILTER " + " OR ".join(f"A.value < {n}.5" for n in range(MANY)), None),
    "OR of texts": ("A FILTER " + " OR ".join(f"A.name = 'n{n}'" for n in range(1_000)), None),
    "OR of ANDs": (
        "A FILTER " + " OR ".join(f"(A.id = {n} AND A.value > {n})" for n in range(30)),
        "condition-too-large",
    ),
    "sum": ("A FILTER " + " + ".join(["A.id"] * MANY) + " > 1", "too-deep"),
    "IN of numbers": (f"A FILTER A.id IN ({', '.join(map(str, range(LISTED)))})", None),
    "NOT IN of numbers": (
        f"A FILTER A.id NOT IN ({', '.join(map(str, range(FEWER_LISTED)))})",
        None,
    ),
    "IN of fractions": (
        f"A FILTER A.value IN ({', '.join(f'{n}.5' for n in range(FEWER_LISTED))})",
        None,
    ),
    "IN of texts": (
        "A FILTER A.name IN (" + ", ".join(f"'n{n}'" for n in range(FEWER_LISTED)) + ")",
        None,
    ),
    "IN of one number": (f"A FILTER A.id IN ({', '.join(['7'] * FEWER_LISTED)})", None),
    "too long an IN": (f"A FILTER A.id IN ({', '.join(['A.id'] * LISTED)})", "too-long"),
    "whole number": (f"A FILTER A.id > {2**63}", "integer-range"),
    "longer number": (f"A FILTER A.id > {'9' * 100_000}", "long-number"),
    "fraction": ("A FILTER A.value > 1e999", "double-range"),
    "longer fraction": (f"A FILTER A.value > 1e{'9' * 10_000}", "long-number"),
    "small fraction": ("A FILTER A.value > 1e-999", None),
    "time": ("A FILTER A.ts > TIMESTAMP '99999-01-01 00:00:00'", "invalid-timestamp"),
    "window": (f"A WITHIN {2**63} EVENTS", "window-too-large"),
    "window of 2^62": (f"A WITHIN {2**62} EVENTS", None),
    "longer window": (f"A WITHIN {'9' * 100_000} EVENTS", "long-number"),
    "duration": ("A WITHIN 99999999999999999999 DAYS [ts]", "window-too-large"),
    "limit": (f"A LIMIT {2**63}", "limit-range"),
    "limit of none": ("A LIMIT 0", "limit-range"),
    "long text": (f"A FILTER A.name = '{'x' * 1_000_000}'", None),
    "long name": (f"A AS `{'x' * 1_000_000}`", None),
    "long comment": (f"A -- {'x' * 1_000_000}", None),
    "long LIKE": (f"A FILTER A.name LIKE '{'%a' * 20_000}'", None),
    "long RLIKE": (f"A FILTER A.name RLIKE '{'(a|b)*' * 2_000}'", None),
    "states": ("(A OR B)+ ; A ; " + " ; ".join(f"(A OR B) AS x{n}" for n in range(14)), None),
}


# What compiles is not checked beforehand.
LONG_LISTS = ("IN of numbers", "IN of texts", "NOT IN of numbers")


@pytest.mark.each(7)
@pytest.mark.parametrize("size", [size for size in SIZES if size not in LONG_LISTS])
def test_sizes(size: str, tmp_path: Path, capsys: Any) -> None:
    """The whole compiler: it takes a text of this size, or says what is wrong; neither hangs."""
    text, said = SIZES[size]
    source = tmp_path / "q.cel"
    source.write_text(WIDE + text, "utf-8")
    begun = time.process_time()
    code = main(["check", str(source)])
    taken = time.process_time() - begun
    error = capsys.readouterr().err
    assert code == (said is not None), error[:2000]
    assert f"error[{said}]" in error or said is None, error[:2000]
    assert taken < CPU_LIMIT


@pytest.mark.parametrize("size", share(LONG_LISTS, 3, first=1))
def test_long_lists_compile_and_match(size: str) -> None:
    """A list of 100,000 is one look-up in the module, and no line per item; nothing hangs.

    So many for one kind of list; for the others a fifth.
    """
    text, _ = SIZES[size]
    listed = LISTED if size == "IN of numbers" else FEWER_LISTED
    begun = time.process_time()
    with interpreted(formatted=True):
        matcher = celc.compile(WIDE + text)
    assert time.process_time() - begun < CPU_LIMIT
    assert len(matcher.source.splitlines()) < 10_000
    numbers = [-1, 0, 7, listed - 1, listed]
    events = [{"type": "A", "id": number, "name": f"n{number}"} for number in numbers]
    wanted = [1, 2, 3] if size.startswith("IN") else [0, 4]
    for answer in answers(only_query(matcher), events, random.Random(size)).values():
        assert [match["start"] for match in answer] == wanted


def test_an_or_of_thousands_compiles_and_matches() -> None:
    """Python's compiler goes a level deeper for each sign of a row."""
    text = WIDE + "A FILTER " + " OR ".join(f"A.id = {n}" for n in range(MANY))
    with interpreted(formatted=True):
        matcher = celc.compile(text)
    events = [{"type": "A", "id": number} for number in (-1, MANY - 1, MANY)]
    for answer in answers(only_query(matcher), events, random.Random(1)).values():
        assert [match["start"] for match in answer] == [1]
