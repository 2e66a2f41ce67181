"""A second process starts warm, whatever the query, and no process runs code that is out of date.

What machine code is kept under, where it is kept, and what happens where it cannot be.
"""

from __future__ import annotations

import ast
import json
import os
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celc_runtime
import pytest
from celc_runtime.jit import bootstrap, contents, kernels, machine_code, shipping
from other_processes import COUNT, DECLARED, MORE_PLANS, PLANS, run, started

import celc
from celc.interfaces.cli import main


def _compiled(plans: dict[str, str], folder: Path) -> list[str]:
    """Modules made by the command line; their names."""
    names = [f"q_{name.replace(' ', '_')}" for name in plans]
    for name, text in zip(names, plans.values(), strict=True):
        (folder / f"{name}.cel").write_text(DECLARED + text)
        arguments = ["compile", str(folder / f"{name}.cel"), "-o", str(folder / f"{name}.py")]
        assert main(arguments) == 0
    return names


# --- on the way to a worker -----------------------------------------------------------------------


def test_a_pickled_query_is_no_broadcast() -> None:
    """Spark makes a broadcast of functions of more than 2²⁰ bytes, and the workers of streams read
    none. A quarter of that is left for the query."""
    for text in PLANS.values():
        (query,) = celc.compile(DECLARED + text).queries.values()
        assert len(pickle.dumps(query)) < 3 * 2**18


# --- warm -----------------------------------------------------------------------------------------


def _check_second_process(plans: dict[str, str], folder: Path) -> None:
    names = _compiled(plans, folder)
    first = run(COUNT, folder, *names)
    second = run(COUNT, folder, *names)
    assert all(second["matches"].values()), second
    assert second["matches"] == first["matches"]
    assert second["misses"] == []
    assert second["hits"] > 3


@pytest.mark.long
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """Each kind of plan; the first process fills the user's own cache, as it does for users."""
    _check_second_process(PLANS, tmp_path)


@pytest.mark.long
def test_a_second_process_compiles_nothing_for_any_plan(tmp_path: Path) -> None:
    _check_second_process(PLANS | MORE_PLANS, tmp_path)


def test_what_a_worker_loads_is_kept(tmp_path: Path) -> None:
    """Nothing is compiled here: each function knows the name of its file."""
    query = celc.compile(DECLARED + PLANS["keyed and checked"]).queries["query"]
    (tmp_path / "query.pickle").write_bytes(pickle.dumps(query))
    script = """
import gc, importlib, json, pickle, sys
query = pickle.load(open(sys.argv[1], "rb"))
package = type(query).__module__.partition(".")[0]
engine = importlib.import_module(package + ".engine.walk.walk")
listing = engine.listing_kernel(query.program.listing)
kernels = importlib.import_module(package + ".jit.kernels")
names = {o.__name__: o.content is not None for o in gc.get_objects()
         if isinstance(o, kernels.Kernel) and o.__module__.startswith("celc")}
again = pickle.dumps(query) == open(sys.argv[1], "rb").read()
print(json.dumps([names, again]))
"""
    cache = str(tmp_path / "cache")
    names, again = run(script, tmp_path / "query.pickle", alone=True, CELC_CACHE_DIR=cache)
    assert {"update_1", "classify_1", "admits_1", "listing", "walk", "list_fired"} <= set(names)
    assert all(names.values()), names
    assert again


@pytest.mark.long
@pytest.mark.parametrize("archive", [False, True], ids=["nothing", "an archive"])
def test_a_second_worker_compiles_nothing(archive: bool, tmp_path: Path) -> None:
    """What is shipped, where there is nothing of celc, or the runtime is in an archive."""
    cache, folder = str(tmp_path / "cache"), tmp_path / "modules.zip"
    for number, text in enumerate(PLANS.values()):
        query = celc.compile(DECLARED + text).queries["query"]
        (tmp_path / f"{number}.pickle").write_bytes(pickle.dumps(query))
    if archive:
        _zipped(folder)
    pickles = [tmp_path / f"{number}.pickle" for number in range(len(PLANS))]
    for number, path in enumerate(pickles):
        found = run(COUNT, folder, path, alone=True, CELC_CACHE_DIR=cache)
        # Each query is compiled, but the runtime for the first of them only.
        assert ("lowest_id" in found["misses"]) == (number == 0), found["misses"]
        assert ("celc_runtime" in found["modules"]) == archive
    second = run(COUNT, folder, *pickles, alone=True, CELC_CACHE_DIR=cache)
    assert all(second["matches"].values())
    assert second["misses"] == []


def _zipped(path: Path) -> None:
    runtime = Path(celc_runtime.__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        for file in runtime.rglob("*.py"):
            archive.write(file, f"celc_runtime/{file.relative_to(runtime).as_posix()}")


@pytest.mark.long
def test_an_archive_of_the_runtime_ships_itself(tmp_path: Path) -> None:
    """As `spark-submit --py-files` hands it to a driver without celc."""
    archive = tmp_path / "modules.zip"
    _zipped(archive)
    (name,) = _compiled({"plain": PLANS["plain"]}, tmp_path)
    with zipfile.ZipFile(archive, "a") as opened:
        opened.write(tmp_path / f"{name}.py", f"{name}.py")
    script = f"""
import json, pickle
sys.path.insert(0, sys.argv[1])
import {name}
open(sys.argv[2], "wb").write(pickle.dumps({name}.QUERIES["{name}"]))
print(json.dumps({name}.__file__))
"""
    pickled = tmp_path / "query.pickle"
    plain = {"NUMBA_DISABLE_JIT": "1", "CELC_CACHE_DIR": str(tmp_path / "cache")}
    place = run("import sys\n" + script, archive, pickled, alone=True, **plain)
    assert place == f"{archive}/{name}.py"
    found = run(COUNT, tmp_path / "none", pickled, alone=True, **plain)
    assert found["matches"] == {str(pickled): found["matches"][str(pickled)]}
    assert "celc_runtime" not in found["modules"]


# --- never out of date ----------------------------------------------------------------------------

_KERNEL = """
from celc_runtime.jit.kernels import njit
@njit(nogil=True)
def answer(array):
    return array[0] + {number}
def made(number):
    @njit(nogil=True)
    def answer(array):
        return array[0] + number
    return answer
"""

# Loads modules by their paths, all under one name, and prints what their functions say.
_ANSWERS = """
import importlib.util, json, sys
import numpy as np
answers, hits = [], 0
for path in sys.argv[1].split(","):
    spec = importlib.util.spec_from_file_location("one_name", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    functions = [module.answer, *map(module.made, map(int, sys.argv[2:]))]
    answers += [function(np.zeros(1, np.int64)) for function in functions]
    hits += sum(sum(function.compiled.stats.cache_hits.values()) for function in functions)
print(json.dumps([answers, hits]))
"""


def test_functions_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    """Two modules with one name, a file before and after a change, and closures.

    Numba numbers what it compiles, each process from the start. So machine code of two functions
    with one name can bear the same symbols.
    """
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for number, path in enumerate(paths, 1):
        path.write_text(_KERNEL.format(number=number))
    env = {"CELC_CACHE_DIR": str(tmp_path / "cache")}
    assert run(_ANSWERS, paths[0], 10, **env) == [[1, 10], 0]
    assert run(_ANSWERS, paths[1], 20, **env) == [[2, 20], 0]
    both = f"{paths[0]},{paths[1]}"
    found, hits = run(_ANSWERS, both, 10, 20, **env)
    assert (found, hits) == ([1, 10, 20, 2, 10, 20], 4)


def test_machine_code_is_named_after_all_that_it_depends_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def content(text: str = _KERNEL, number: object = 1, **options: object) -> str | None:
        module: dict[str, Any] = {"__name__": "m", "__celc_text__": text}
        exec(text.format(number=1), module)
        return kernels.Kernel(module["made"](number).py_func, options, kept=True).content

    others = [content(_KERNEL + "\n"), content(number=2), content(error_model="numpy")]
    with monkeypatch.context() as patch:
        patch.setattr(contents, "_runtime_digest", lambda: "another version")
        others.append(content())
    assert len({content(), *others}) == 5
    assert content() == content()
    # Not told apart by what they print.
    assert content(number=[1]) is None


def test_all_kernels_are_kept() -> None:
    """Nothing is compiled past the cache: not in the runtime, and not in a generated module."""
    folders = Path(celc_runtime.__file__).parent, Path(celc.__file__).parents[1] / "generated"
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        names = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba")
            for name in node.names
        }
        assert not names & {"njit", "jit"}, path


def test_settings_of_numba_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.registry import cpu_target

    cache, codegen = machine_code.KernelCache("f", "content"), cpu_target.target_context.codegen()
    names = {cache.file_of((), codegen)}
    monkeypatch.setattr(machine_code.config, "BOUNDSCHECK", 1)
    names.add(cache.file_of((), codegen))
    assert len(names) == 2


# --- where it is kept -----------------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[None]:
    """The folder is looked for again, and warnings are given again, here and afterwards."""
    for _ in range(2):
        bootstrap.cache_root.cache_clear()
        bootstrap._evict_oldest.cache_clear()
        vars(warnings).pop("__celc_warned__", None)
        if _ == 0:
            yield


@pytest.mark.usefixtures("fresh")
def test_the_runtime_is_packed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A next process sends the packed texts that are kept, unless they have been damaged."""
    monkeypatch.setenv("CELC_CACHE_DIR", str(tmp_path))
    pack = shipping._packed_runtime.__wrapped__
    packed = pack()
    sources = shipping.runtime_sources()
    assert packed.startswith(bootstrap.digest_of(sources).encode())
    assert bootstrap._unpacked(packed) == sources
    (kept,) = tmp_path.glob("*.texts")
    with monkeypatch.context() as patch:
        patch.setattr(shipping, "_compressed", None)  # nothing is packed
        assert pack() == packed
    kept.write_bytes(kept.read_bytes()[:-1])
    assert pack() == packed


def _root(monkeypatch: pytest.MonkeyPatch, **env: object) -> Path | None:
    for name in ("CELC_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, str(value))
    bootstrap.cache_root.cache_clear()
    vars(warnings).pop("__celc_warned__", None)
    return bootstrap.cache_root()


@pytest.mark.usefixtures("fresh")
def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    own = f"celc-{os.getuid()}"
    home, other = tmp_path / "home", tmp_path / "other"
    assert _root(monkeypatch, HOME=home) == home / ".cache" / "celc"
    assert _root(monkeypatch, HOME=home, XDG_CACHE_HOME=other) == other / "celc"
    assert _root(monkeypatch, HOME=home, NUMBA_CACHE_DIR=other) == other / own
    named = _root(monkeypatch, HOME=home, NUMBA_CACHE_DIR=other, CELC_CACHE_DIR=other / "mine")
    assert named == other / "mine"
    # A home that cannot be written, as on executors.
    (tmp_path / "file").write_text("")
    assert _root(monkeypatch, HOME=tmp_path / "file") == tmp_path / "tmp" / own
    for path in (home / ".cache" / "celc", other / "mine", tmp_path / "tmp" / own):
        assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("fresh")
def test_a_folder_that_is_not_ours_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, link, file = tmp_path / "shared", tmp_path / f"celc-{os.getuid()}", tmp_path / "file"
    shared.mkdir()
    shared.chmod(0o777)
    file.write_text("")
    with pytest.warns(RuntimeWarning, match=f"others can write to {shared}"):
        assert _root(monkeypatch, CELC_CACHE_DIR=shared) is None
    assert bootstrap.stored("anything") is None
    bootstrap.store("anything", b"content")
    assert not list(shared.iterdir())
    with pytest.warns(RuntimeWarning, match="File exists"):
        assert _root(monkeypatch, CELC_CACHE_DIR=file) is None
    # In a folder for temporary files anybody can have put a link.
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    shared.chmod(0o700)
    link.symlink_to(shared)
    with pytest.warns(RuntimeWarning, match="is not a folder"):
        assert _root(monkeypatch, HOME=file) is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root")
@pytest.mark.usefixtures("fresh")
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert _root(monkeypatch, CELC_CACHE_DIR=folder) is None


def test_without_a_cache_all_works_and_it_is_said_once(tmp_path: Path) -> None:
    script = """
import json, subprocess, sys
done = subprocess.run([sys.executable, "-c", sys.argv[1], *sys.argv[2:]], capture_output=True,
                      text=True)
print(json.dumps([json.loads(done.stdout), done.stderr]))
"""
    (tmp_path / "module.py").write_text(_KERNEL.format(number=1))
    (tmp_path / "file").write_text("")
    (found, _), error = run(
        script, _ANSWERS, tmp_path / "module.py", 7, 8, CELC_CACHE_DIR=str(tmp_path / "file")
    )
    assert found == [1, 7, 8]
    assert error.count("celc cannot keep compiled code for the next process") == 1
    assert "CELC_CACHE_DIR" in error
    assert len(error.splitlines()) == 1


@pytest.mark.usefixtures("fresh")
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _root(monkeypatch, CELC_CACHE_DIR=tmp_path / "cache")
    assert root is not None

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.warns(RuntimeWarning, match="No space left on device"):
            bootstrap.store("name", b"content")
    assert not list(root.iterdir())
    bootstrap.store("name", b"content")
    assert bootstrap.stored("name") == b"content"


@pytest.mark.usefixtures("fresh")
def test_what_was_not_used_for_longest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _root(monkeypatch, CELC_CACHE_DIR=tmp_path)
    assert root == tmp_path
    monkeypatch.setattr(bootstrap, "_MOST_BYTES", 4000)
    for number in range(8):
        bootstrap.store(str(number), bytes(1000 - 32))
        os.utime(tmp_path / str(number), (number, number))
    assert len(list(tmp_path.iterdir())) == 8  # looked at once in a process
    assert bootstrap.stored("0") is not None
    bootstrap._evict_oldest.cache_clear()
    bootstrap.store("8", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"0", "7", "8"}


@pytest.mark.long
@pytest.mark.parametrize(
    "processes", [pytest.param(4, id="four"), pytest.param(16, id="16", marks=pytest.mark.long)]
)
def test_processes_that_start_at_once(processes: int, tmp_path: Path) -> None:
    """None sees a part of a file, and in the end all is there."""
    module, cache = tmp_path / "module.py", tmp_path / "cache"
    module.write_text(_KERNEL.format(number=1))
    env: dict[str, str | None] = {"CELC_CACHE_DIR": str(cache)}
    running = [started(_ANSWERS, module, 5, flags=[], env=env) for _ in range(processes)]
    for process in running:
        out, error = process.communicate()
        assert process.returncode == 0, error
        assert not error
        assert json.loads(out)[0] == [1, 5]
    assert sorted(path.name.partition("-")[0] for path in cache.glob("*.kernel")) == ["answer"] * 2
    assert run(_ANSWERS, module, 5, **env) == [[1, 5], 2]
