"""A standalone module has the texts of the runtime in it, and needs nothing else of celc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import black
import pytest
from celc_runtime.jit import bootstrap, shipping
from other_processes import COUNT, DECLARED, EVENTS, MATCHES, MORE_PLANS, PLANS, other_sources, run

import celc
from celc.driver.standalone import standalone

_MODULE = celc.compile(DECLARED + PLANS["plain"], name="q.cel").source
_RUNTIME = shipping.runtime_sources()
_PLAIN: dict[str, str | None] = {"NUMBA_DISABLE_JIT": "1"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two standalone modules of one query: `mine` with the runtime as it is, `other`
    with another version of it."""
    folder = tmp_path_factory.mktemp("standalone")
    (folder / "mine.py").write_text(standalone(_MODULE))
    (folder / "other.py").write_text(standalone(_MODULE, other_sources()))
    return folder


_WAYS = {
    "import": "import mine as module",
    "import under two names": "import mine\nsys.modules.pop('mine')\n"
    "Path(sys.argv[1], 'other_name.py').write_text(Path(sys.argv[1], 'mine.py').read_text())\n"
    "import other_name as module\nassert count(mine.QUERIES['q']) == 4\n"
    "assert module.celc_runtime is mine.celc_runtime",
    "its path alone": "module = by_path(sys.argv[1] + '/mine.py')",
    "run as a script": "from types import SimpleNamespace\n"
    "module = SimpleNamespace(**runpy.run_path(sys.argv[1] + '/mine.py', run_name='__main__'))",
    "its text": "from types import SimpleNamespace\nspace = {'__name__': 'notebook'}\n"
    "exec(Path(sys.argv[1], 'mine.py').read_text(), space)\nmodule = SimpleNamespace(**space)",
}


@pytest.mark.each(6)
@pytest.mark.parametrize("way", _WAYS)
def test_ways_to_load_a_standalone_module(way: str, files: Path) -> None:
    script = f"""
sys.path.insert(0, sys.argv[1])
before = {{*sys.modules}}
{_WAYS[way]}
query = module.QUERIES["q"]
error = module.celc_runtime.EventError
found = [count(query), error.__module__.split(".")[0], runtimes()]
needless = {{"celc", "jinja2", "lark", "pandas", "pyspark"}} & ({{*sys.modules}} - before)
print(json.dumps([*found, sorted(needless)]))
"""
    package = bootstrap.package_name(_RUNTIME)
    found = run(EVENTS + script, files, alone=True, **_PLAIN)
    assert found == [MATCHES, package, [package], []]


@pytest.mark.long
def test_standalone_modules_and_an_installed_runtime_do_not_meet(files: Path) -> None:
    """Two versions in files, and the one that is installed, in any order."""
    script = """
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
import mine, other, celc_runtime, celc_runtime.query
runtimes_ = [mine.celc_runtime, other.celc_runtime, celc_runtime]
queries = [mine.QUERIES["q"], other.QUERIES["q"]]
copies = [pickle.loads(pickle.dumps(query)) for query in queries]
print(json.dumps([
    [count(query) for query in queries + copies],
    [isinstance(q, r.CompiledQuery) for q in queries + copies for r in runtimes_],
    len({runtime.Plan for runtime in runtimes_}),
    runtimes()]))
"""
    names = sorted(map(bootstrap.package_name, (_RUNTIME, other_sources())))
    for order in (["mine", "celc_runtime", "other"], ["other", "mine"], ["celc_runtime"]):
        counts, own, plans, loaded = run(EVENTS + script, files, *order, **_PLAIN)
        assert counts == [MATCHES] * 4
        assert own == [True, False, False, False, True, False] * 2
        assert plans == 3
        assert loaded == ["celc_runtime", *names]


def test_a_standalone_module_is_sent_with_a_query(files: Path, tmp_path: Path) -> None:
    """Its text goes alone: it has the runtime in it, once."""
    send = """
module = by_path(sys.argv[1])
Path(sys.argv[2]).write_bytes(pickle.dumps(module.QUERIES["q"].with_options(max_work=7)))
print(json.dumps(None))
"""
    load = """
data = Path(sys.argv[1]).read_bytes()
query = pickle.loads(data)
most = query.plan.choice.max_work
print(json.dumps([count(query), most, pickle.dumps(query) == data, runtimes()]))
"""
    path, pickled = files / "mine.py", tmp_path / "pickled"
    env = _PLAIN | {"CELC_CACHE_DIR": str(tmp_path / "cache")}
    run(EVENTS + send, path, pickled, alone=True, **env)
    assert pickled.stat().st_size < path.stat().st_size * 1.1
    package = bootstrap.package_name(_RUNTIME)
    for _ in range(2):
        assert run(EVENTS + load, pickled, alone=True, **env) == [MATCHES, 7, True, [package]]


def test_aggregates_of_the_file_are_in_the_module(tmp_path: Path) -> None:
    source = celc.compile(DECLARED + MORE_PLANS["aggregate of the file"]).source
    (tmp_path / "plain.py").write_text(source)
    (tmp_path / "alone.py").write_text(standalone(source))
    wanted = run(COUNT, tmp_path, "plain", **_PLAIN)["matches"]["plain"]
    assert run(COUNT, tmp_path, "alone", alone=True, **_PLAIN)["matches"]["alone"] == wanted > 0


@pytest.mark.long
def test_a_second_process_compiles_nothing(files: Path, tmp_path: Path) -> None:
    """Also where the file has another name there: its runtime has the same."""
    (tmp_path / "other_name.py").write_text((files / "mine.py").read_text())
    env = {"CELC_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "1"}
    first = run(COUNT, files, "mine", alone=True, **env)
    second = run(COUNT, tmp_path, "other_name", alone=True, **env)
    assert [*first["matches"].values()] == [*second["matches"].values()] != [0]
    assert len(first["misses"]) > 3
    assert (second["hits"] > 3, second["misses"]) == (True, [])


# --- the file -------------------------------------------------------------------------------------


def test_the_same_input_is_the_same_file() -> None:
    files = dict(reversed(_RUNTIME.items()))
    assert standalone(_MODULE) == standalone(_MODULE, files)


def test_black_leaves_the_file_as_it_is() -> None:
    text = standalone(_MODULE)
    assert black.format_str(text, mode=black.Mode(line_length=100)) == text


def test_the_texts_stand_in_the_file_as_they_are() -> None:
    text = standalone(_MODULE)
    for file, source in _RUNTIME.items():
        assert source in text, file
    head, tail = _MODULE.split("from celc_runtime", 1)
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
