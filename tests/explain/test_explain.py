"""`celc explain`: what each stage made of a query, as text and as a graph.

Only what a reader looks for is asserted, not the layout: the golden files hold that.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import celc
from celc.interfaces.cli import main

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE }, EVENT B { id: INT, value: DOUBLE },
  EVENT C { id: INT, value: DOUBLE }
}
"""
_QUERIES = {
    "plain": "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.value > 40 WITHIN 10 EVENTS",
    "nested": "SELECT * FROM S WHERE MAX(A+) ; LAST(B ; C)",
    "window": "SELECT NXT * FROM S WHERE A ; B+ ; C WITHIN 5 EVENTS",
    "deadline": "SELECT * FROM S WHERE A ; !B FOR 3 [value]",
}
_AGGREGATE = """AGGREGATE slope(a: DOUBLE, b: INT): DOUBLE
STATE s: DOUBLE = 0 STEP s = s + a * b RESULT s
SELECT slope(x.value, x.id) AS rise FROM S
WHERE (A ; (B AS x)+ ; C) FILTER slope(x.value, x.id) > 2 OR x.id < slope(PRIOR x.value, x.id)
WITHIN 9 EVENTS"""
# The same wait for a C, reached in two ways: two states become one.
_MERGED = "SELECT * FROM S WHERE (A ; B ; C) OR (B ; B ; C)"

_STAGES = ("formula", "chain", "cea", "det", "tables", "routes", "code")
_DRAWN = ("cea", "det")


def _written(folder: Path, query: str, name: str = "q") -> str:
    path = folder / f"{name}.cel"
    path.write_text(_DECLARED + query)
    return str(path)


def _explained(capsys: Any, *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return str(capsys.readouterr().out)


def _refused(capsys: Any, *arguments: str) -> str:
    """The message on standard error of a command line that is refused."""
    assert main(["explain", *arguments]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "Traceback" not in printed.err
    return str(printed.err)


# --- text -----------------------------------------------------------------------------------------

# What the dump of each stage must say of each query.
_SAID = {
    ("plain", "formula"): [
        "query plain",
        "streams: S",
        "output: x[id, value], y[id, value]",
        "window: 10 EVENTS",
        "LP-normal form:",
        "A[value > 40.0] {x}",
        "B {y}",
    ],
    ("plain", "routes"): [
        "query 'plain'",
        "runs by match_table, match_arrow, match_pandas, match_compact",
        "not by match, match_all, register, match_stream, match_stream(allow_unbounded_state=True)",
        "it has no order column, and a distributed table has no order of its own: compile it with",
        "threads: one reads a table, because no order column is named",
    ],
    ("plain", "cea"): [
        "complex event automaton: 3 states, 3 transitions",
        "initial 0, final 1",
        "A[value > 40.0] / {x}",
        "any / ○",
        "B / {y}--> 1",
    ],
    ("plain", "det"): [
        "I/O-deterministic automaton: 2 states (2 before minimisation), 3 symbol classes",
        "any other event",
        "0  start",
        "1  after A, before B",
        "/ {y} --> match",
    ],
    ("plain", "tables"): [
        "2 states, 3 symbols",
        "{x} first",
        "start --0--> 1",
        "unmarked events leave every state as it is",
        "update: code without branches",
    ],
    ("nested", "formula"): ["sequence", "MAX", "LAST", "A {A}", "C {C}"],
    ("nested", "cea"): [
        "contexts, by the events before: 2",
        "A in context 0 / {A}",
        "C / {C}",
    ],
    ("nested", "det"): ["A in context 0", "A in context 1", "the match is lost", "--> match"],
    ("nested", "tables"): [
        "context after each symbol",
        "state after an unmarked event",
        "update: ",
    ],
    ("window", "formula"): ["select: NXT", "window: 5 EVENTS", "NXT", "B {B}"],
    ("window", "cea"): ["complex event automaton:", "--> 1"],
    ("window", "det"): ["after A, before B", "after B, before B or C", "--> match"],
    ("window", "tables"): ["listing: by ", "update: "],
    ("deadline", "formula"): ["sequence", "; !", "FOR 3 [value]"],
    ("deadline", "cea"): ["A / {A}"],
    ("deadline", "det"): ["--> match"],
    ("deadline", "tables"): [
        "no B after it FOR 3 [value]: when later events are known",
        "matches are decided when the deadline FOR 3 [value] of their end has passed",
        "the clock, the greatest such time in all events",
    ],
}


@pytest.mark.parametrize(("name", "stage"), _SAID)
def test_stages(name: str, stage: str, tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES[name], name)
    text = _explained(capsys, source, "--stage", stage)
    assert text.endswith("\n")
    missing = [words for words in _SAID[name, stage] if words not in text]
    assert not missing, text
    if stage == "formula":
        # The stage that is shown unless one is named, below what the query is and costs.
        first, *lines = text.splitlines()
        shown = _explained(capsys, source).splitlines()
        assert [shown[0], *shown[6:]] == [first, *lines]
    assert _explained(capsys, source, "--stage", stage, "--format", "text") == text


def test_aggregates_of_the_file_are_shown_as_they_are_called(tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _AGGREGATE)
    call, before = "slope(x.value, x.id)", "slope(PRIOR x.value, x.id)"
    formula = _explained(capsys, source)
    assert f"output: {call} AS rise" in formula
    assert f"{call} > 2.0 OR" in formula
    assert before in formula
    tables = _explained(capsys, source, "--stage", "tables")
    assert re.search(re.escape(before) + ".*: when the match is complete", tables), tables
    code = _explained(capsys, source, "--stage", "code")
    ast.parse(code)
    assert "# An aggregate that the file declares: slope(value, id)" in code


_ROWS = """CREATE TABLE t (x INT);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS m PATTERN (A) DEFINE A AS x > 1)
"""
_WITH_OPTIONS = {
    **{(f"{name}.cel", ""): text for name, text in _QUERIES.items()},
    ("p.cel", "--order-by id --tiebreak tie --max-states 500 --max-work 70"): _QUERIES["plain"],
    ("p.cel", "--order-by id --ties simultaneous"): "SELECT * FROM S WHERE A ; B",
    ("p.cel", "--at-end closed"): _QUERIES["deadline"],
    ("p.cel", "--first-order"): "SELECT * FROM S WHERE A AS x ; B AS y",
    ("rows.sql", "--max-work 70"): _ROWS,
}


@pytest.mark.each(3)
@pytest.mark.parametrize(("name", "options"), _WITH_OPTIONS)
def test_code(
    name: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The module that `celc compile` writes with the same options, to the byte."""
    monkeypatch.chdir(tmp_path)
    text = _WITH_OPTIONS[name, options]
    Path(name).write_text(text if name.endswith(".sql") else _DECLARED + text)
    shown = _explained(capsys, name, "--stage", "code", *options.split())
    assert main(["compile", name, *options.split()]) == 0
    assert shown == Path(name).with_name(f"{Path(name).stem}_udf.py").read_text()
    assert f"celc compile {name} -o {Path(name).stem}_udf.py {options}".strip() in shown


@pytest.mark.each(3)
@pytest.mark.parametrize("name", _QUERIES)
@pytest.mark.parametrize("stage", _STAGES)
def test_the_same_at_every_run(name: str, stage: str, tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES[name], name)
    assert _explained(capsys, source, "--stage", stage) == _explained(
        capsys, source, "--stage", stage
    )


def test_the_indentation_is_the_nesting(tmp_path: Path, capsys: Any) -> None:
    """What a selector chooses from stands below it, and what follows it does not."""
    lines = _explained(capsys, _written(tmp_path, _QUERIES["nested"])).splitlines()

    def depth(word: str) -> int:
        return next(
            len(line) - len(line.lstrip()) for line in lines if line.split() == [*word.split()]
        )

    assert depth("sequence") < depth("MAX") < depth("+") < depth("A {A}")
    assert depth("MAX") == depth("LAST") < depth("B {B}") == depth("C {C}")


def test_numbers_before_and_after_minimisation(tmp_path: Path, capsys: Any) -> None:
    text = _explained(capsys, _written(tmp_path, _MERGED), "--stage", "det")
    found = re.search(r"automaton: (\d+) states \((\d+) before minimisation\)", text)
    assert found
    assert (found[1], found[2]) == ("3", "5")
    states = text.split("\nstates:\n")[1]
    assert re.findall(r"^  (\d+)  ", states, re.MULTILINE) == ["0", "1", "2"]


def test_warnings_are_no_part_of_what_is_shown(tmp_path: Path, capsys: Any) -> None:
    assert main(["explain", _written(tmp_path, _QUERIES["nested"]), "--stage", "cea"]) == 0
    printed = capsys.readouterr()
    assert "warning[one-ordered-scan]" in printed.err
    assert "warning" not in printed.out


def test_several_queries_one_after_another(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "two.cel"
    queries = "".join(f"QUERY {name}: {text}\n" for name, text in _QUERIES.items())
    source.write_text(_DECLARED + queries)
    text = _explained(capsys, str(source))
    assert re.findall("^query (.*)$", text, re.MULTILINE) == [*_QUERIES]
    for name in _QUERIES:
        alone = _explained(capsys, str(source), "--query", name)
        assert alone in text
        assert alone.startswith(f"query {name}\n")
    told = _refused(capsys, str(source), "--stage", "det", "--format", "dot")
    assert "--query" in told
    drawn = _explained(capsys, str(source), "--stage", "det", "--format", "dot", "--query", "plain")
    assert _graph(drawn)


@pytest.mark.parametrize("format", ["text", "dot"])
def test_output_to_a_file(format: str, tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES["nested"])
    arguments = [source, "--stage", "det", "--format", format]
    text = _explained(capsys, *arguments)
    assert _explained(capsys, *arguments, "-o", str(tmp_path / "out")) == ""
    assert (tmp_path / "out").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("stage", ["cea", "det", "tables"])
def test_only_labels_are_shown_as_labels(stage: str, tmp_path: Path, capsys: Any) -> None:
    """A selector compares supports; that an event is in one is marked, but it is no label."""
    text = _explained(capsys, _written(tmp_path, _QUERIES["window"]), "--stage", stage)
    assert "{, " not in text
    assert "{C}" in text


# --- drawings -------------------------------------------------------------------------------------

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_NODE = re.compile(rf"  {_QUOTED} \[label={_QUOTED}(, shape=doublecircle)?\];")
_EDGE = re.compile(rf"  {_QUOTED} -> {_QUOTED} \[label={_QUOTED}\];")


def _graph(text: str) -> tuple[dict[str, str], list[tuple[str, str, str]], list[str]]:
    """The names of nodes by their ids, the edges, and the ids of the nodes that end a match."""
    first, *lines, last = text.removesuffix("\n").split("\n")
    assert (first, last) == ("digraph cea {", "}")
    outside = re.sub(_QUOTED, "", text)
    assert outside.count("{") == outside.count("}") == 1
    assert outside.count("[") == outside.count("]")
    nodes: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    finals: list[str] = []
    for line in lines:
        if node := _NODE.fullmatch(line):
            assert node[1] not in nodes
            nodes[node[1]] = node[2]
            finals += [node[1]] if node[3] else []
        elif edge := _EDGE.fullmatch(line):
            edges.append((edge[1], edge[2], edge[3]))
        else:
            assert re.fullmatch(r"  rankdir=LR;|  (node|edge) \[[^\]]*\];", line), line
    assert all(source in nodes and target in nodes for source, target, _ in edges)
    pairs = [(source, target) for source, target, _ in edges]
    assert len(pairs) == len(set(pairs)), "parallel transitions share an edge"
    return nodes, edges, finals


@pytest.mark.parametrize("name", _QUERIES)
@pytest.mark.parametrize("stage", _DRAWN)
def test_drawings(name: str, stage: str, tmp_path: Path, capsys: Any) -> None:
    """Each state of the text is a node by the same name, and every node is on a way to a match."""
    source = _written(tmp_path, _QUERIES[name], name)
    nodes, edges, finals = _graph(_explained(capsys, source, "--stage", stage, "--format", "dot"))
    text = _explained(capsys, source, "--stage", stage)
    states = re.search(r"automaton: (\d+) states", text)
    assert states
    # The deterministic automaton has no final state: a match ends on a move.
    assert len(nodes) == int(states[1]) + (stage == "det")
    assert nodes["0"] == "start"
    assert [nodes[node] for node in finals] == ["match"]
    if stage == "det":
        named = dict(re.findall(r"^  (\d+)  (.*)$", text.split("\nstates:\n")[1], re.MULTILINE))
        assert {node: name for node, name in nodes.items() if node != "match"} == named
    for reached, from_, to in (({"0"}, 0, 1), ({*finals}, 1, 0)):
        while more := {edge[to] for edge in edges if edge[from_] in reached} - reached:
            reached |= more
        assert reached == {*nodes}


def test_what_a_drawing_says(tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES["plain"])
    nodes, edges, _ = _graph(_explained(capsys, source, "--stage", "det", "--format", "dot"))
    assert nodes == {"0": "start", "1": "after A, before B", "match": "match"}
    assert edges == [("0", "1", "A[value > 40.0] / {x}"), ("1", "match", "B / {y}")]


def test_names_cannot_leave_their_quotes(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "q.cel"
    source.write_text(
        'CREATE STREAM S { EVENT `A"] }` { id: INT }, EVENT `B\\` { id: INT } }\n'
        'SELECT * FROM S WHERE STRICT(`A"] }`+) ; `B\\`'
    )
    for stage in _DRAWN:
        nodes, edges, _ = _graph(
            _explained(capsys, str(source), "--stage", stage, "--format", "dot")
        )
        assert any(r"A\"] }" in label for _, _, label in edges)
        assert any(r"B\\" in name for name in nodes.values())


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", _QUERIES)
@pytest.mark.parametrize("stage", _DRAWN)
def test_svg(name: str, stage: str, tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES[name], name)
    text = _explained(capsys, source, "--stage", stage, "--format", "svg")
    assert "<svg" in text
    assert text.rstrip().endswith("</svg>")
    assert "start" in text


def test_svg_without_graphviz(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    source = _written(tmp_path, _QUERIES["plain"])
    told = _refused(capsys, source, "--stage", "cea", "--format", "svg")
    assert "Graphviz" in told
    assert "`dot` is not on the PATH" in told
    assert "--format dot" in told


def test_svg_where_graphviz_fails(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        return subprocess.CompletedProcess([], 1, stdout="", stderr="no fonts\n")

    monkeypatch.setattr(shutil, "which", lambda program: "/usr/bin/dot")
    monkeypatch.setattr(subprocess, "run", failing)
    source = _written(tmp_path, _QUERIES["plain"])
    told = _refused(capsys, source, "--stage", "det", "--format", "svg")
    assert "dot failed: no fonts" in told


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["dot", "svg"])
@pytest.mark.parametrize("stage", sorted({*_STAGES} - {*_DRAWN, "chain"}))
def test_only_automata_and_chains_are_drawn(
    format: str, stage: str, tmp_path: Path, capsys: Any
) -> None:
    source = _written(tmp_path, _QUERIES["plain"])
    told = _refused(capsys, source, "--stage", stage, "--format", format)
    assert "only the stages chain, cea and det can be drawn" in told


def test_a_drawing_needs_a_stage(tmp_path: Path, capsys: Any) -> None:
    """The stage that is shown unless one is named is no automaton."""
    assert "can be drawn" in _refused(
        capsys, _written(tmp_path, _QUERIES["plain"]), "--format", "dot"
    )


def test_wrong_arguments(tmp_path: Path, capsys: Any) -> None:
    source = _written(tmp_path, _QUERIES["plain"], "plain")
    assert "its queries: plain" in _refused(capsys, source, "--query", "other")
    assert "no-such.cel" in _refused(capsys, str(tmp_path / "no-such.cel"))
    for arguments in (["--stage", "parse"], ["--format", "png"]):
        with pytest.raises(SystemExit) as stopped:
            main(["explain", source, *arguments])
        assert stopped.value.code == 2
        assert "invalid choice" in capsys.readouterr().err


def test_wrong_queries_are_reported_as_check_does(tmp_path: Path, capsys: Any) -> None:
    text = "SELECT * FROM S WHERE ((A AS x)+ ; B) FILTER COUNT(x) > 1001"
    source = _written(tmp_path, text)
    for stage in _STAGES:
        assert main(["explain", source, "--stage", stage]) == 1
        printed = capsys.readouterr()
        assert not printed.out
        for problem in celc.check(_DECLARED + text):
            assert f"[{problem.code}]" in printed.err


_RULES = """CREATE STREAM S { EVENT A { id: INT, value: DOUBLE, name: STRING } }
PARAMETERS rule { id: INT, low: DOUBLE, high: DOUBLE, most: DOUBLE, pattern: STRING }
SELECT * FROM S FOR EACH rule WHERE (A AS x ; A AS y) FILTER """


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("x.id = rule.id AND y.id = rule.id", ["  A: id = rule.id looked up"]),
        (
            "x.value > rule.low AND x.value < rule.high AND y.value > rule.low AND y.id = rule.id",
            [
                "  A: value > rule.low by sorted bounds; value < rule.high by sorted bounds",
                "  A: id = rule.id looked up; value > rule.low by sorted bounds",
            ],
        ),
        (
            # Two bounds of one kind would exclude less.
            "x.value >= rule.most AND x.value > rule.low AND x.value < rule.high AND "
            "y.id = rule.id",
            [
                "  A: value >= rule.most by sorted bounds; value < rule.high by sorted bounds; all "
                "other conditions are tested for each pair"
            ],
        ),
        (
            # With either side there is a bound of the other kind, and it is preferred.
            "x.value >= rule.most AND x.value > rule.low AND "
            "(x.value < rule.high OR x.value < rule.most) AND y.id = rule.id",
            [
                "  A: value >= rule.most by sorted bounds; each side of an OR by itself; all other "
                "conditions are tested for each pair"
            ],
        ),
        ("x.value + y.value > rule.low", ["  A: every row, because no condition compares it"]),
        ("x.name LIKE rule.pattern", ["  name LIKE rule.pattern: a scan, which tests each"]),
    ],
)
def test_the_index_of_rows_is_told(
    condition: str, told: list[str], tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "q.cel"
    path.write_text(_RULES + condition)
    text = _explained(capsys, str(path), "--stage", "tables")
    assert "rows of rule: an index finds those that an event concerns" in text
    for line in told:
        assert line in text, text


_LASTING = """CREATE STREAM Jobs LASTING [begin, end] { EVENT J { begin: LONG, end: LONG } }
CREATE STREAM Marks { EVENT M { end: LONG } }
QUERY jobs: SELECT * FROM Jobs WHERE J AS j
QUERY both: SELECT * FROM Jobs, Marks WHERE J ; M
QUERY read: SELECT * FROM jobs, Marks WHERE jobs ; M
"""


def test_events_that_last_say_from_when_to_when(tmp_path: Path, capsys: Any) -> None:
    """Rows of queries say so where they are named."""
    path = tmp_path / "lasting.cel"
    path.write_text(_LASTING)

    def lines(query: str) -> list[str]:
        told = _explained(capsys, str(path), "--query", query, "--stage", "formula")
        return [line for line in told.splitlines() if " last" in line or line.startswith("last")]

    (jobs,), (both,), (read,) = map(lines, ("jobs", "both", "read"))
    assert jobs.startswith("lasting: each event from its begin to its end, read in the order of")
    assert both.startswith("lasting: each event from its own start to its end,")
    assert read.startswith("reads the rows of: jobs (each lasts from its start_time to its end)")


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        (
            "(A AS x : A AS y) FILTER x.id = rule.id AND y.id = rule.id",
            [
                "followed from there (on a stream, every row reads every event)",
                "  A: id = rule.id looked up",
                "  where ':' or STRICT asks for it, the next event is read",
            ],
        ),
        (
            "(A AS x ; A AS y) FILTER x.id = rule.id AND x.value < rule.high AND y.id = rule.id "
            "WITHIN 5 EVENTS",
            ["  else the next event in the window is read that has the values of the row"],
        ),
    ],
)
def test_how_rows_are_followed_is_told(
    formula: str, told: list[str], tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "q.cel"
    declared = _RULES[: _RULES.index("SELECT")]
    path.write_text(f"{declared}SELECT * FROM S FOR EACH rule WHERE {formula}")
    text = _explained(capsys, str(path), "--stage", "tables")
    assert "rows of rule: an index finds those for which an event can begin a match" in text
    for line in told:
        assert line in text, text
    verdict = _explained(capsys, str(path))
    assert "for each row of rule that is followed at the event" in verdict
