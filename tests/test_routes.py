"""Every way to run a query on Spark, and one file or one pickle instead of an installation.

What reaches a worker must bring all it needs: here workers run a Python that cannot import celc or
its runtime. The generated code runs uncompiled where only the answers matter.
"""

from __future__ import annotations

import ast
import json
import os
import pickle
import random
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from engines import interpreted, only_query
from reference import as_expected, difference, evaluate
from spark_routes import ROUTES, table
from strategies import DECLARATION, random_stream

import celc
from celc.cli import main
from celc.standalone import ORDER, standalone

# Queries that go by every route whatever the step through the rest: where a letter depends on what
# came before, or a match is chosen or given up by what else is in its window, state is kept between
# batches that the other queries do not have.
_CHOSEN = {
    "06": ("SELECT MAX * FROM S WHERE (A+ ; B)+ ; C",),
    "07": (
        "SELECT * FROM S WHERE MAX(A+) ; LAST(B ; C)",
        "SELECT * FROM S WHERE LAST(NXT(A+ ; B) ; C)",
        "SELECT * FROM S WHERE A ; NXT(B ; C)+",
        "SELECT * FROM S WHERE (STRICT(A ; B))+ ; C",
    ),
    "08": (
        "SELECT NXT * FROM S WHERE A ; B ; C WITHIN 3 EVENTS",
        "SELECT LAST * FROM S WHERE A+ ; B WITHIN 4 [ts]",
        "SELECT MAX * FROM S WHERE A+ ; B WITHIN 4 [ts]",
    ),
    "09": ("SELECT LAST * FROM S WHERE A+ ; B PARTITION BY id",),
    "12": ("SELECT * FROM S WHERE (A+ ; B) ALL C",),
    "13": (
        "SELECT * FROM S WHERE ((A ; C) UNLESS B)+ ; D",
        "SELECT LAST * FROM S WHERE (A ; C) UNLESS B",
    ),
    "14": (
        "SELECT * FROM S WHERE A ; !(B ; C) ; D",
        "SELECT * FROM S WHERE A ; !B ; C WITHIN 4 EVENTS",
    ),
    "15": (
        "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
        "WITHIN 4 EVENTS",
        "SELECT * FROM S WHERE ((A AS x)+ ; (B AS y)+) FILTER x.value < y.value",
    ),
    "16": ("SELECT MAX * FROM S WHERE ((A AS x)+ ; B AS y) FILTER x.value < y.value",),
    "17": ("SELECT * FROM S WHERE (B ; (A AS x)+ ; C) FILTER x.value > AVG(PRIOR x.value)",),
    "19": ("SELECT * FROM S WHERE A AS x ; !(B AS y FILTER y.id = x.id) ; C",),
    "20": ("SELECT * FROM S WHERE A AS x ; MAX((B AS y FILTER y.id = x.id)+ ; C)",),
}


def _written(query: str) -> str:
    """What follows the declarations."""
    return query[query.index("SELECT") :].strip()


def _chosen() -> list[Case]:
    """Of each query of `_CHOSEN` the case with the most matches."""
    found = []
    for stem, queries in _CHOSEN.items():
        cases = load_cases(stem)
        for query in queries:
            same = [case for case in cases if _written(case.query).split() == query.split()]
            assert same, f"{stem}: {query}"
            found.append(max(same, key=lambda case: len(case.expected)))
    # No file has STRICT in a window, nor a selector in one with partitions and consumption.
    found += [_evaluated(query) for query in _MORE]
    assert all(case.expected for case in found)
    return found


_MORE = (
    "SELECT STRICT * FROM S WHERE (A OR B)+ ; C WITHIN 4 [ts]",
    "SELECT NXT * FROM S WHERE A+ ; B PARTITION BY id WITHIN 6 EVENTS",
    "SELECT LAST x FROM S WHERE A AS x ; !C ; B PARTITION BY id WITHIN 8 [ts] CONSUME BY PARTITION",
    "SELECT MAX * FROM S WHERE NXT(A ; B) ; C WITHIN 9 EVENTS CONSUME BY ANY",
)


def _evaluated(query: str) -> Case:
    """A case of a query: the reference's answer on the first random stream with a few matches."""
    text = DECLARATION + query
    for seed in range(100):
        events = random_stream(random.Random(seed), 20, nulls=0)
        found = evaluate(text, events, order_by="ts")
        if len(found) >= 3:
            return Case(query, text, events, [as_expected(match) for match in found])
    raise AssertionError(query)


def _cases(limit: int | None) -> list[Case]:
    """For about `limit` of all queries a case each, or all cases.

    Those that must not be missed come first.
    """
    chosen: list[Case] = []
    seen: set[str] = set()
    for case in load_cases():
        if limit is None or case.query not in seen:
            seen.add(case.query)
            chosen.append(case)
    first = _chosen()
    step = 1 if limit is None else max(1, len(chosen) // (limit - len(first)))
    return first + chosen[::step]


def _on_spark(cases: list[Case], folder: Path) -> None:
    items = [{"query": case.query, "events": case.events} for case in cases]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_routes.py")), *ROUTES],
        input=json.dumps(items),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout)
    assert list(answers) == list(ROUTES)
    problems = [
        f"{route} {case.name}: {found}"
        for route in ROUTES
        for case, answer in zip(cases, answers[route], strict=True)
        if (found := difference(answer, case.expected))
    ]
    assert not problems, "\n".join(problems)


def test_forty_queries_on_spark(tmp_path: Path) -> None:
    """By each of the routes, in one session."""
    cases = _cases(40)
    assert len(cases) >= 40
    _on_spark(cases, tmp_path)


@pytest.mark.long
def test_all_cases_on_spark(tmp_path: Path) -> None:
    cases = _cases(None)
    for at in range(0, len(cases), 60):
        _on_spark(cases[at : at + 60], tmp_path)


# --- without an installation ----------------------------------------------------------------------

_QUERY = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: LONG }
}
SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.value > 1 AND y.name LIKE 'p%'
PARTITION BY id WITHIN 5 [ts]
"""

_EVENTS = [
    {"type": "AB"[k % 3 % 2], "id": k % 2, "value": k % 5, "name": "pq"[k % 2], "ts": k}
    for k in range(40)
]


def _alone(script: str, *arguments: str, data: bytes = b"", folder: Path) -> bytes:
    """Run a script where the installed packages are there, but not celc, nor its runtime."""
    lines = [
        "import sys",
        f"sys.path.append({sysconfig.get_paths()['purelib']!r})",
        "for name in ('celc.pipeline', 'celc_runtime'):",
        "    try: __import__(name)",
        "    except ImportError: pass",
        "    else: raise SystemExit(f'{name} can be imported')",
        script,
    ]
    done = subprocess.run(
        [sys.executable, "-S", "-c", "\n".join(lines), *arguments],
        input=data,
        capture_output=True,
        check=False,
        cwd=folder,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout


_RUN = """
import json, pyarrow as pa
events = pa.ipc.open_stream(sys.stdin.buffer.read()).read_all()
print(json.dumps([[r['start_pos'], r['end_pos']] for r in {query}.match_table(events).to_pylist()]))
"""


def _ipc(events: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as writer:
        writer.write_table(events)
    return sink.getvalue().to_pybytes()


def _expected() -> list[list[int]]:
    rows = celc.compile(_QUERY).match_table(table(_EVENTS)).to_pylist()
    assert rows
    return [[row["start_pos"], row["end_pos"]] for row in rows]


def test_a_pickle_needs_no_file_of_ours(tmp_path: Path) -> None:
    query = celc.compile(_QUERY).queries["query"]
    (tmp_path / "query.pickle").write_bytes(pickle.dumps(query))
    script = "import pickle\nquery = pickle.load(open(sys.argv[1], 'rb'))\n" + _RUN.format(
        query="query"
    )
    for _ in range(2):  # the second time from the files that the first one wrote
        found = _alone(
            script, str(tmp_path / "query.pickle"), data=_ipc(table(_EVENTS)), folder=tmp_path
        )
        assert json.loads(found) == _expected()
    # Bytecode of the runtime and of the query; nothing that was on the way there.
    names = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert [name.rpartition("_")[0] for name in names] == ["celc_query", "celc_runtime"]


def test_a_damaged_file_in_the_cache_is_written_again(tmp_path: Path) -> None:
    query = celc.compile(_QUERY).queries["query"]
    (tmp_path / "query.pickle").write_bytes(pickle.dumps(query))
    load = "import pickle\npickle.load(open(sys.argv[1], 'rb'))"
    _alone(load, str(tmp_path / "query.pickle"), folder=tmp_path)
    files = {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    for path, data in files.items():
        path.write_bytes(data[: len(data) // 2])
    _alone(load, str(tmp_path / "query.pickle"), folder=tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == files


def test_options_travel_with_a_pickle() -> None:
    query = celc.compile(_QUERY).queries["query"].with_options(order_by="id", tiebreak=["row"])
    again = pickle.loads(pickle.dumps(query))
    assert again.plan == query.plan


def test_conditions_are_compiled_for_a_query_and_not_for_each_of_its_runs() -> None:
    """Compiling takes a second; Spark may start a run for each of many small groups."""
    formula = "(A AS a ; B AS b) FILTER a.value < b.value"
    query: Any = only_query(celc.compile(f"{DECLARATION} SELECT * FROM S WHERE {formula}"))
    events = table([{"type": "A", "value": 1.0}, {"type": "B", "value": 2.0}])
    changed = query.with_options(max_work=100)
    assert [len(q.match_table(events)) for q in (query, query, changed)] == [1, 1, 1]
    assert len(query.listing.signatures) == 1


def test_a_query_with_options_answers_as_it_did() -> None:
    """Also where it needs more than a plan and kernels; what is unpickled is given options too."""
    problems = []
    for case in _chosen():
        with interpreted():
            query = only_query(celc.compile(case.query, order_by="ts"))
        wanted = query.match_table(table(case.events))
        assert len(wanted) == len(case.expected)
        if query.with_options(tiebreak="row").match_table(table(case.events)) != wanted:
            problems.append(case.name)
    assert not problems, problems


def test_a_standalone_module_needs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text(_QUERY)
    module = tmp_path / "q_udf.py"
    assert main(["compile", str(tmp_path / "q.cel"), "-o", str(module), "--standalone"]) == 0
    script = "sys.path.insert(0, sys.argv[1])\nimport q_udf\n" + _RUN.format(query="q_udf")
    found = _alone(script, str(tmp_path), data=_ipc(table(_EVENTS)), folder=tmp_path)
    assert json.loads(found) == _expected()


@pytest.mark.parametrize(
    "limit", [pytest.param(0, id="chosen"), pytest.param(40, id="forty", marks=pytest.mark.long)]
)
def test_queries_standalone(limit: int, tmp_path: Path) -> None:
    cases = _cases(limit) if limit else _chosen()
    for number, case in enumerate(cases):
        with interpreted():
            matcher = celc.compile(case.query, order_by="ts", tiebreak="row")
        (tmp_path / f"q{number}.py").write_text(standalone(matcher.source))
        with (tmp_path / f"q{number}.arrow").open("wb") as stream:
            stream.write(_ipc(table(case.events)))
    script = """
import importlib, json, pyarrow as pa
sys.path.insert(0, sys.argv[1])
answers = []
for number in range(int(sys.argv[2])):
    query, = importlib.import_module(f'q{number}').QUERIES.values()
    events = pa.ipc.open_stream(open(f'{sys.argv[1]}/q{number}.arrow', 'rb')).read_all()
    answers.append([
        {'partition': {n: r[n] for n in query.plan.partition_by}, 'start': r['start_pos'],
         'end': r['end_pos'],
         'labels': {x.name: [e['pos'] for e in r[x.name]] for x in query.plan.labels}}
        for r in query.match_table(events).to_pylist()])
print(json.dumps(answers))
"""
    answers = json.loads(_alone(script, str(tmp_path), str(len(cases)), folder=tmp_path))
    problems = [
        f"{case.name}: {found}"
        for case, answer in zip(cases, answers, strict=True)
        if (found := difference(answer, case.expected))
    ]
    assert not problems, "\n".join(problems)


def test_the_runtime_can_stand_in_one_file() -> None:
    """No two modules of the runtime define one name, none is forgotten, none of it is imported."""
    folder = Path(celc.__file__).parents[1] / "runtime" / "celc_runtime"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == set(ORDER)
    tree = ast.parse(standalone(celc.compile(_QUERY).source))
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert not [name for name in imported if name.startswith(("celc", "lark", "jinja2", "black"))]


def test_a_standalone_module_loads_by_its_path_alone(tmp_path: Path) -> None:
    (tmp_path / "q_udf.py").write_text(standalone(celc.compile(_QUERY).source))
    script = """
import importlib.util
spec = importlib.util.spec_from_file_location('q_udf', sys.argv[1] + '/q_udf.py')
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.QUERY_NAME, 'q_udf' in sys.modules)
"""
    assert _alone(script, str(tmp_path), folder=tmp_path) == b"query False\n"


def test_frames_come_out_as_tables_do() -> None:
    pytest.importorskip("pandas")
    matcher: Any = celc.compile(_QUERY, order_by="ts", tiebreak="row")
    events = table(_EVENTS)
    shuffled = events.to_pandas().sample(frac=1, random_state=1)
    frame = matcher.match_pandas(shuffled)
    rows = matcher.match_table(events).to_pylist()
    assert frame[["id", "start_pos", "end_pos"]].to_dict("records") == [
        {name: row[name] for name in ("id", "start_pos", "end_pos")} for row in rows
    ]
    assert [list(events) for events in frame["x"]] == [row["x"] for row in rows]
