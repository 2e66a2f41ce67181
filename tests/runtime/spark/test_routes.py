"""Every way to run a query on Spark, and one file or one pickle instead of an installation.

What reaches a worker must bring all it needs: here workers run a Python that cannot import celc or
its runtime. The generated code runs uncompiled where only the answers matter.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.engine.walk.walk import listing_kernel
from chosen_cases import chosen, some_cases
from engines import interpreted, only_query
from reference import difference
from spark_routes import table
from strategies import DECLARATION

import celc
from celc.driver.standalone import standalone
from celc.interfaces.cli import main

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
        "for name in ('celc.driver.pipeline', 'celc_runtime'):",
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
        env=os.environ
        | {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": ""},
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


@pytest.mark.each(2)
@pytest.mark.parametrize("package", ["numba", "pyarrow"])
def test_a_worker_without_a_package_names_it(package: str, tmp_path: Path) -> None:
    with interpreted():
        query = only_query(celc.compile(_QUERY))
    (tmp_path / "query.pickle").write_bytes(pickle.dumps(query))
    blocked = f"sys.modules[{package!r}] = None  # an import of it is a ModuleNotFoundError\n"
    load = "import pickle\npickle.load(open(sys.argv[1], 'rb'))"
    said = rf"needs the package '{package}' wherever it runs.*-m pip install {package}"
    with pytest.raises(AssertionError, match=said):
        _alone(blocked + load, str(tmp_path / "query.pickle"), folder=tmp_path)


def test_a_changed_file_in_the_cache_is_refused(tmp_path: Path) -> None:
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


@pytest.mark.long
def test_conditions_are_compiled_for_a_query_and_not_for_each_of_its_runs() -> None:
    """Compiling takes a second; Spark may start a run for each of many small groups."""
    formula = "(A AS a ; B AS b) FILTER a.value < b.value"
    query: Any = only_query(celc.compile(f"{DECLARATION} SELECT * FROM S WHERE {formula}"))
    events = table([{"type": "A", "value": 1.0}, {"type": "B", "value": 2.0}])
    changed = query.with_options(max_work=100)
    assert [len(q.match_table(events)) for q in (query, query, changed)] == [1, 1, 1]
    checks = query.program.listing
    assert len(listing_kernel(checks).compiled.signatures) == 1


def test_a_query_with_options_answers_as_it_did() -> None:
    """Also where it needs more than a plan and kernels; what is unpickled is given options too."""
    problems = []
    for case in chosen():
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


@pytest.mark.long
def test_ten_queries_standalone(tmp_path: Path) -> None:
    cases = some_cases(40)[::4]
    for number, case in enumerate(cases):
        with interpreted():
            source = celc.compile(case.query, order_by="ts", tiebreak="row").source
        text = standalone(source)
        (tmp_path / f"q{number}.py").write_text(text)
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
        {'partition': {n: r[n] for n in query.plan.source.partition_by}, 'start': r['start_pos'],
         'end': r['end_pos'],
         'labels': {x.name: [e['pos'] for e in r[x.name]] for x in query.plan.answer.labels}}
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


@pytest.mark.long
def test_a_standalone_module_loads_by_its_path_alone(tmp_path: Path) -> None:
    """In the suite `test_a_standalone_module_is_sent_with_a_query` does so."""
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
