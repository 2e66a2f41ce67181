"""The runtime travels as texts, its sub-packages too; a standalone module has them in it."""

from __future__ import annotations

import importlib
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any

import black
import pytest
from celc_runtime.jit import bootstrap, shipping
from nested_runtime import moved, nested_sources, write_archive, write_package
from other_processes import COUNT, DECLARED, PLANS, run

import celc
from celc.standalone import standalone

_MODULE = celc.compile(DECLARED + PLANS["plain"], name="q.cel").source
_RUNTIME = shipping.runtime_sources()
_PLAIN: dict[str, str | None] = {"NUMBA_DISABLE_JIT": "1"}

_EVENTS = """
import importlib, importlib.util, json, pickle, runpy, sys
from pathlib import Path
import pyarrow as pa
events = pa.table({"type": list("ABCABC"), "id": pa.array([1] * 6, pa.int32()),
                   "value": [0.5] * 6, "ts": pa.array(range(6))})
def count(query):
    return len(query.match_table(events))
def by_path(path, name="q"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert name not in sys.modules
    return module
def runtimes():
    return sorted(n for n in sys.modules if n.startswith("celc_runtime") and "." not in n)
"""
_COUNT = 4


# --- a small package ------------------------------------------------------------------------------

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


# --- the runtime in sub-packages, by every way ----------------------------------------------------


def test_a_package_with_sub_packages_is_sent_with_a_query(tmp_path: Path) -> None:
    """From a folder and from an archive, to where there is nothing, and on from there."""
    write_package(tmp_path / "folder", nested_sources())
    write_archive(tmp_path / "modules.zip", nested_sources())
    (tmp_path / "folder" / "q.py").write_text(moved(_MODULE))
    with zipfile.ZipFile(tmp_path / "modules.zip", "a") as archive:
        archive.writestr("q.py", moved(_MODULE))
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
    env = _PLAIN | {"CELC_CACHE_DIR": str(tmp_path / "cache")}
    name = bootstrap.package_name(nested_sources())
    for place in (tmp_path / "folder", tmp_path / "modules.zip"):
        pickled = tmp_path / f"{place.name}.pickle"
        here = run(_EVENTS + send, place, pickled, alone=True, **env)
        assert here == [_COUNT, ["celc_runtime"], str(place / "q.py")]
        for _ in range(2):  # the second time out of the cache
            assert run(_EVENTS + load, pickled, alone=True, **env) == [_COUNT, True, [name]]
    one, two = ((tmp_path / f"{name}.pickle").read_bytes() for name in ("folder", "modules.zip"))
    assert one == two


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with standalone modules of one query, with the runtime as it is and nested."""
    folder = tmp_path_factory.mktemp("standalone")
    (folder / "flat.py").write_text(standalone(_MODULE))
    (folder / "nested.py").write_text(standalone(moved(_MODULE), nested_sources()))
    return folder


_WAYS = {
    "import": "import {name} as module",
    "import under two names": "import {name}\nsys.modules.pop('{name}')\n"
    "Path(sys.argv[1], 'other_name.py').write_text(Path(sys.argv[1], '{name}.py').read_text())\n"
    "import other_name as module\nassert count({name}.QUERIES['q']) == 4\n"
    "assert module.celc_runtime is {name}.celc_runtime",
    "its path alone": "module = by_path(sys.argv[1] + '/{name}.py')",
    "run as a script": "from types import SimpleNamespace\n"
    "module = SimpleNamespace(**runpy.run_path(sys.argv[1] + '/{name}.py', run_name='__main__'))",
    "its text": "from types import SimpleNamespace\nspace = {{'__name__': 'notebook'}}\n"
    "exec(Path(sys.argv[1], '{name}.py').read_text(), space)\nmodule = SimpleNamespace(**space)",
}


@pytest.mark.parametrize(("way", "name"), [("import", "flat"), *((way, "nested") for way in _WAYS)])
def test_ways_to_load_a_standalone_module(way: str, name: str, files: Path) -> None:
    script = f"""
sys.path.insert(0, sys.argv[1])
before = {{*sys.modules}}
{_WAYS[way].format(name=name)}
query = module.QUERIES["q"]
error = module.celc_runtime.EventError
found = [count(query), error.__module__.split(".")[0], runtimes()]
needless = {{"celc", "jinja2", "lark", "pandas", "pyspark"}} & ({{*sys.modules}} - before)
print(json.dumps([*found, sorted(needless)]))
"""
    package = bootstrap.package_name(nested_sources() if name == "nested" else _RUNTIME)
    found = run(_EVENTS + script, files, alone=True, **_PLAIN)
    assert found == [_COUNT, package, [package], []]


def test_standalone_modules_and_an_installed_runtime_do_not_meet(files: Path) -> None:
    """Two versions in files, and the one that is installed, in any order."""
    script = """
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
import flat, nested, celc_runtime, celc_runtime.query
runtimes_ = [flat.celc_runtime, nested.celc_runtime, celc_runtime]
queries = [flat.QUERIES["q"], nested.QUERIES["q"]]
copies = [pickle.loads(pickle.dumps(query)) for query in queries]
print(json.dumps([
    [count(query) for query in queries + copies],
    [isinstance(q, r.CompiledQuery) for q in queries + copies for r in runtimes_],
    len({runtime.Plan for runtime in runtimes_}),
    runtimes()]))
"""
    names = sorted(map(bootstrap.package_name, (_RUNTIME, nested_sources())))
    for order in (["flat", "celc_runtime", "nested"], ["nested", "flat"], ["celc_runtime"]):
        counts, own, plans, loaded = run(_EVENTS + script, files, *order, **_PLAIN)
        assert counts == [_COUNT] * 4
        assert own == [True, False, False, False, True, False] * 2
        assert plans == 3
        assert loaded == ["celc_runtime", *names]


@pytest.mark.parametrize("name", ["flat", "nested"])
def test_a_standalone_module_is_sent_with_a_query(name: str, files: Path, tmp_path: Path) -> None:
    """Its text goes alone: it has the runtime in it, once."""
    send = """
module = by_path(sys.argv[1])
Path(sys.argv[2]).write_bytes(pickle.dumps(module.QUERIES["q"].with_options(max_work=7)))
print(json.dumps(None))
"""
    load = """
data = Path(sys.argv[1]).read_bytes()
query = pickle.loads(data)
print(json.dumps([count(query), query.plan.max_work, pickle.dumps(query) == data, runtimes()]))
"""
    path, pickled = files / f"{name}.py", tmp_path / "pickled"
    env = _PLAIN | {"CELC_CACHE_DIR": str(tmp_path / "cache")}
    run(_EVENTS + send, path, pickled, alone=True, **env)
    assert pickled.stat().st_size < path.stat().st_size * 1.1
    package = bootstrap.package_name(nested_sources() if name == "nested" else _RUNTIME)
    for _ in range(2):
        assert run(_EVENTS + load, pickled, alone=True, **env) == [_COUNT, 7, True, [package]]


@pytest.mark.parametrize("name", ["flat", "nested"])
def test_a_second_process_compiles_nothing(name: str, files: Path, tmp_path: Path) -> None:
    """Also where the file has another name there: its runtime has the same."""
    (tmp_path / "other_name.py").write_text((files / f"{name}.py").read_text())
    env = {"CELC_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "1"}
    first = run(COUNT, files, name, alone=True, **env)
    second = run(COUNT, tmp_path, "other_name", alone=True, **env)
    assert [*first["matches"].values()] == [*second["matches"].values()] != [0]
    assert len(first["misses"]) > 3
    assert (second["hits"] > 3, second["misses"]) == (True, [])


# --- the file -------------------------------------------------------------------------------------


def test_the_same_input_is_the_same_file() -> None:
    files = nested_sources()
    assert standalone(_MODULE, files) == standalone(_MODULE, dict(reversed(files.items())))


def test_black_leaves_the_file_as_it_is() -> None:
    text = standalone(_MODULE)
    assert black.format_str(text, mode=black.Mode(line_length=100)) == text


def test_the_texts_stand_in_the_file_as_they_are() -> None:
    text = standalone(_MODULE)
    for file, source in _RUNTIME.items():
        assert source in text, file
    head, tail = _MODULE.split("import numpy", 1)
    assert text.startswith(head)
    assert text.endswith(tail[tail.index("# Symbols") :])


_HARD = {
    "both quotes": "x = r'''a'''\ny = \"\"\"b\"\"\"\n",
    "a quote at the end": "x = 'a'",
    "a double quote at the end": 'x = "a"',
    "a backslash at the end": "x = 1  # \\",
    "escapes": 'x = "\\n\\N{EN DASH}\\u1234"  # {braces} \\x\n',
    "letters": "x = 'φ∪\U0001f600'\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", _HARD.values(), ids=_HARD)
def test_any_text_stands_in_a_file(text: str) -> None:
    files = {"__init__.py": "MORE = 1\n", "deep/bootstrap.py": _bootstrap(), "more.py": text}
    space: dict[str, Any] = {"__name__": "made"}
    exec(standalone('"""Made."""\n\nimport sys\nfrom celc_runtime import MORE\n', files), space)
    assert space["__celc_runtime__"] == files
    assert space["MORE"] == 1


def test_a_file_whose_runtime_was_changed_says_so() -> None:
    text = standalone(
        '"""Made."""\nfrom celc_runtime import MORE\n',
        {"__init__.py": "MORE = 1\n", "bootstrap.py": _bootstrap(), "more.py": ""},
    )
    with pytest.raises(ImportError, match="texts in this file are not those that celc wrote"):
        exec(text.replace("MORE = 1", "MORE = 2"), {"__name__": "made"})


def _bootstrap() -> str:
    return _RUNTIME[shipping.bootstrap_file(_RUNTIME)]
