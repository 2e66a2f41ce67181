"""A worker without celc runs the very query, whatever its texts look like.

The runtime travels as text and gets a name of its own, which no other version on the worker can
clash with. So imports of the runtime are compiled with another name, and nothing but they.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any

import celc_runtime
import pytest
from celc_runtime.jit import bootstrap, shipping
from other_processes import (
    DECLARED,
    EVENTS,
    MATCHES,
    PLANS,
    other_version,
    run,
    write_archive,
    write_package,
)

import celc

_MODULE = celc.compile(DECLARED + PLANS["plain"], name="q.cel").source
_RUNTIME = shipping.runtime_sources()

_DECLARED = "CREATE STREAM S { EVENT A { name: STRING, ts: LONG }, EVENT B { ts: LONG } }\n"
_IMPORTS = "from celc_runtime"
_QUERIES = {
    "a condition": f"SELECT * FROM S WHERE A AS x FILTER x.name = '{_IMPORTS}'",
    "a pattern": f"SELECT * FROM S WHERE A AS x FILTER x.name LIKE '%{_IMPORTS} imp%'",
    "a list": f"SELECT * FROM S WHERE A AS x FILTER x.name IN ('{_IMPORTS}.plan import Plan', 'b')",
    "what is shown": f"SELECT '{_IMPORTS}' AS words FROM S WHERE A",
    "a label": f"SELECT * FROM S WHERE A AS `{_IMPORTS}`",
    "a line": f"SELECT * FROM S WHERE A AS x FILTER x.name = '\n{_IMPORTS} import Plan\n'",
}
_NAMES = [_IMPORTS, f"{_IMPORTS} import x", f"{_IMPORTS}.plan import Plan", "a"]
_NAMES += [f"\n{_IMPORTS} import Plan\n"]

_MATCHES = f"""
import json, pickle, sys
import pyarrow as pa
names = {_NAMES!r}
events = pa.table({{
    "type": ["A"] * len(names), "name": names, "ts": pa.array(range(len(names)), pa.int64())}})
found = []
for path in sys.argv[1:]:
    query = pickle.load(open(path, "rb"))
    found.append([query.match_table(events).to_pylist(), query.output_schema.names])
    assert pickle.loads(pickle.dumps(query)).plan == query.plan
    classify = query.program.classify
    text = getattr(classify, "py_func", classify).__globals__["QUERY"]
    found[-1].append(text)
modules = sorted({{name.split(".")[0] for name in sys.modules if name.startswith("celc_runtime")}})
print(json.dumps([found, modules]))
"""


def _pickles(folder: Path) -> list[Path]:
    paths = []
    for number, text in enumerate(_QUERIES.values()):
        paths.append(folder / f"{number}.pickle")
        query = celc.compile(_DECLARED + text, order_by="ts").queries["query"]
        paths[-1].write_bytes(pickle.dumps(query))
    return paths


@pytest.mark.long
@pytest.mark.parametrize(
    "other", [pytest.param(False, marks=pytest.mark.long), True], ids=["nothing", "another version"]
)
def test_texts_that_look_like_imports_are_left_alone(other: bool, tmp_path: Path) -> None:
    paths = _pickles(tmp_path)
    env = {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(tmp_path / "cache")}
    here, (name,) = run(_MATCHES, *paths, **env)
    assert name == "celc_runtime"
    assert [bool(matches) for matches, _, _ in here] == [True] * len(paths)
    place: dict[str, Any] = {"alone": True}
    if other:
        place = {"other": other_version(tmp_path / "other")}
    for _ in range(2):  # the second time bytecode comes out of the cache
        there, names = run(_MATCHES, *paths, **place, **env)
        assert there == here
        assert [name.startswith("celc_runtime_") for name in names] == [True]


_TWO = """
import json, pickle, sys
import pyarrow as pa
events = pa.table({"type": ["A"], "name": ["from celc_runtime"], "ts": pa.array([1], pa.int64())})
queries = [pickle.load(open(path, "rb")) for path in sys.argv[1:]]
found = [len(query.match_table(events)) for query in queries]
import celc_runtime.plan.errors, celc_runtime.query
runtimes = {sys.modules[type(query).__module__.rpartition(".")[0]] for query in queries}
says = sorted([hasattr(runtime, "MINE") for runtime in runtimes])
own = [isinstance(query, celc_runtime.query.CompiledQuery) for query in queries]
others = sorted(hasattr(module, "OTHER_VERSION") for name, module in sys.modules.items()
                if name.startswith("celc_runtime."))
print(json.dumps([found, says, own, others, hasattr(celc_runtime, "OTHER_VERSION")]))
"""


def test_versions_of_the_runtime_do_not_meet(tmp_path: Path) -> None:
    """Two that are sent, and a third that is installed, in one process; each query has its own."""
    query = celc.compile(_DECLARED + _QUERIES["a condition"], order_by="ts").queries["query"]
    (tmp_path / "one.pickle").write_bytes(pickle.dumps(query))
    changed = tmp_path / "changed"
    other_version(changed)
    init = changed / "celc_runtime" / "__init__.py"
    init.write_text(init.read_text() + "MINE = True\n")
    # The query as a driver with the changed runtime sends it.
    (tmp_path / "q_udf.py").write_text(
        celc.compile(_DECLARED + _QUERIES["a condition"], name="q_udf.cel", order_by="ts").source
    )
    again = (
        "import pickle\nsys.path.insert(0, sys.argv[1])\nimport q_udf\n"
        "open(sys.argv[2], 'wb').write(pickle.dumps(q_udf.QUERIES['q_udf']))\nprint('null')\n"
    )
    env = {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(tmp_path / "cache")}
    run(again, tmp_path, tmp_path / "two.pickle", other=changed, **env)
    installed = other_version(tmp_path / "installed")
    pickles = [tmp_path / "one.pickle", tmp_path / "two.pickle"]
    found, says, own, others, third = run(_TWO, *pickles, other=installed, **env)
    assert found == [1, 1]
    assert says == [False, True]
    assert own == [False, False]
    assert set(others) == {True}
    assert third


def test_only_imports_of_the_runtime_are_changed() -> None:
    text = '''"""from celc_runtime import a"""
from __future__ import annotations
from celc_runtime import a
from celc_runtime.b import c as d
from celc_runtimes import e
x = "from celc_runtime import a"  # from celc_runtime import a
def f():
    from celc_runtime.g import h
    return f"from celc_runtime {h}"
'''
    code = bootstrap._code(text, "<m>/m.py", "named")
    same = bootstrap._code(text, "<m>/m.py", "celc_runtime")
    (inner,) = [c for c in code.co_consts if hasattr(c, "co_names") and c.co_name == "f"]
    names = {*code.co_names, *inner.co_names}
    assert {"named", "named.b", "named.g", "celc_runtimes"} <= names
    assert not {"celc_runtime", "celc_runtime.b", "celc_runtime.g"} & names
    assert "from celc_runtime import a" in code.co_consts
    assert "from celc_runtime " in inner.co_consts
    assert same.co_names == compile(text, "<m>", "exec", dont_inherit=True).co_names
    assert list(code.co_lines()) == list(same.co_lines())


def test_the_runtime_is_imported_from_and_not_imported() -> None:
    """`import celc_runtime.x` would bind the name `celc_runtime`, so nothing sent has it."""
    folder = Path(celc_runtime.__file__).parent
    texts = [path.read_text("utf-8") for path in folder.rglob("*.py")]
    texts += [celc.compile(_DECLARED + text).source for text in _QUERIES.values()]
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] != "celc_runtime" for alias in node.names)
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
            # A name of bytecode that is renamed is an import's (`bootstrap._renamed`).
            if isinstance(node, ast.Name | ast.Attribute):
                assert "celc_runtime" not in (getattr(node, "id", ""), getattr(node, "attr", ""))


# --- from files and archives to modules -----------------------------------------------------------

# A package with a package in a package, which the runtime has not.
_SMALL = {
    "__init__.py": "from celc_runtime.outer import two\n"
    "from celc_runtime.outer.inner import leaf\n",
    "one.py": "ONE = 1\n",
    "outer/__init__.py": "",
    "outer/two.py": "from celc_runtime.one import ONE\nTWO = ONE + 1\n",
    "outer/inner/__init__.py": "from celc_runtime.outer.two import TWO\n",
    "outer/inner/leaf.py": "from celc_runtime.outer.inner import TWO\n\n\ndef late():\n"
    "    from celc_runtime.outer import two\n    return two.TWO / 0\n",
}


@pytest.mark.parametrize("kind", ["folder", "archive", "texts"])
def test_the_texts_of_sub_packages_are_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, texts = f"small_{kind}", dict.fromkeys(_SMALL, "X = 1\n")
    if kind == "folder":
        write_package(tmp_path, texts, name)
        (tmp_path / name / "no_package").mkdir()
        (tmp_path / name / "no_package" / "notes.py").write_text("no module of the package\n")
    elif kind == "archive":
        write_archive(tmp_path / "small.zip", texts, name)
    else:
        bootstrap._imported(name, texts, name)
    monkeypatch.syspath_prepend(str(tmp_path / "small.zip" if kind == "archive" else tmp_path))
    assert bootstrap.installed_sources.__wrapped__(name) == texts


def test_texts_become_sub_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELC_CACHE_DIR", str(tmp_path))
    bootstrap.cache_root.cache_clear()
    package = bootstrap.provide(_SMALL)
    name = bootstrap.package_name(_SMALL)
    assert package.__name__ == name
    assert bootstrap.provide(dict(reversed(_SMALL.items()))) is package
    leaf = importlib.import_module(f"{name}.outer.inner.leaf")
    assert (package.two.TWO, package.leaf) == (2, leaf)
    with pytest.raises(ZeroDivisionError) as error:
        leaf.late()
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (f"<{name}>/outer/inner/leaf.py", 6)
    assert last.line == "return two.TWO / 0"
    assert leaf.__package__ == f"{name}.outer.inner"
    assert "celc_runtime.outer" not in sys.modules
    # What was kept is what another process loads.
    assert len(list(tmp_path.glob(f"{name}-*.code"))) == 1
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "_code", None)  # nothing is compiled
        again = bootstrap._TextFinder()
        again.add(name, _SMALL, name)
        assert again.get_code(f"{name}.outer.inner.leaf") is not None
        assert again.is_package(f"{name}.outer")
        assert not again.is_package(f"{name}.one")
    bootstrap.cache_root.cache_clear()


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(("folder",), id="folder"),
        pytest.param(("folder", "modules.zip"), id="archive", marks=pytest.mark.long),
    ],
)
def test_the_runtime_is_sent_with_a_query(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """From a folder and from an archive, to where there is nothing, and on from there. Each of
    five processes makes the bytecode of the runtime or reads it, so the suite has two."""
    write_package(tmp_path / "folder", _RUNTIME)
    write_archive(tmp_path / "modules.zip", _RUNTIME)
    (tmp_path / "folder" / "q.py").write_text(_MODULE)
    with zipfile.ZipFile(tmp_path / "modules.zip", "a") as archive:
        archive.writestr("q.py", _MODULE)
    send = """
import sys
sys.path.insert(0, sys.argv[1])
import q
Path(sys.argv[2]).write_bytes(pickle.dumps(q.QUERIES["q"]))
print(json.dumps([count(q.QUERIES["q"]), runtimes(), q.__file__]))
"""
    load = """
data = Path(sys.argv[1]).read_bytes()
query = pickle.loads(data)
print(json.dumps([count(query), pickle.dumps(query) == data, runtimes()]))
"""
    env = {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(tmp_path / "cache")}
    name = bootstrap.package_name(_RUNTIME)
    for place in (tmp_path / kind for kind in kinds):
        pickled = tmp_path / f"{place.name}.pickle"
        here = run(EVENTS + send, place, pickled, alone=True, **env)
        assert here == [MATCHES, ["celc_runtime"], str(place / "q.py")]
        for _ in range(2 if place.suffix else 1):  # the second time out of the cache
            assert run(EVENTS + load, pickled, alone=True, **env) == [MATCHES, True, [name]]
    assert len({(tmp_path / f"{kind}.pickle").read_bytes() for kind in kinds}) == 1
