"""One folder of machine code for all processes of a user, whatever they have of celc.

A driver and Spark's workers on one machine share it. The driver has celc installed; a worker may
have nothing, and loads the runtime under a name of its own, or another version. And whatever is in
the folder: it is no reason for a query to fail.
"""

from __future__ import annotations

import hashlib
import io
import json
import marshal
import os
import pickle
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import celc_runtime
import numpy as np
import pytest
from celc_runtime.jit import bootstrap, kernels, machine_code
from numba.core.serialize import dumps
from other_processes import COUNT, DECLARED, MORE_PLANS, PLANS, other_version, run

import celc

KINDS = ("celc", "nothing", "another version")
_CHECKED_OTHER = "import celc_runtime.engine.arena.nodes\nassert celc_runtime.OTHER_VERSION\n"


def _pickles(plans: dict[str, str], folder: Path) -> list[Path]:
    paths = []
    for number, text in enumerate(plans.values()):
        query = celc.compile(DECLARED + text).queries["query"]
        paths.append(folder / f"{number}.pickle")
        paths[-1].write_bytes(pickle.dumps(query))
    return paths


def _ran(kind: str, pickles: list[Path], folder: Path) -> Any:
    """What a process that has this of celc finds and compiles; all kinds share a cache."""
    # Machine code that is optimised less is quicker to make, and is kept in the same way.
    env = {"CELC_CACHE_DIR": str(folder / "cache"), "NUMBA_OPT": "1"}
    if kind == "nothing":
        return run(COUNT, "none", *pickles, alone=True, **env)
    if kind == "another version":
        other = folder / "other"
        if not other.exists():
            other_version(other)
        return run(_CHECKED_OTHER + COUNT, "none", *pickles, other=other, **env)
    return run(COUNT, "none", *pickles, **env)


def _check_order(kinds: tuple[str, ...], plans: dict[str, str], folder: Path) -> None:
    pickles = _pickles(plans, folder)
    first = [_ran(kind, pickles, folder) for kind in kinds]
    assert all(first[0]["matches"].values()), first[0]
    assert [found["matches"] for found in first] == [first[0]["matches"]] * len(kinds)
    last = _ran(kinds[0], pickles, folder)
    assert (last["matches"], last["misses"]) == (first[0]["matches"], [])
    assert last["hits"] > 3


@pytest.mark.long
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(KINDS, id="celc first"),
        pytest.param(KINDS[::-1], id="celc last"),
    ],
)
def test_a_query_runs_whoever_compiled_it_before(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """The plan with the fewest kernels: each kind compiles its own."""
    _check_order(kinds, {"one": PLANS["plain"]}, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kinds", permutations(KINDS), ids=", ".join)
def test_all_queries_run_whoever_compiled_them_before(
    kinds: tuple[str, ...], tmp_path: Path
) -> None:
    _check_order(kinds, PLANS | MORE_PLANS, tmp_path)


# A driver runs a query, and Spark's workers do; in either order.
_JOB = """
import json, os, sys
import numpy as np, pyarrow as pa
from pathlib import Path
order, folder = sys.argv[1], Path(sys.argv[2])
rows = np.arange(60)
events = pa.table({
    "type": pa.array(np.array(list("ABC"))[rows * 7 % 5 % 3]),
    "id": pa.array(rows % 3, pa.int32()), "value": pa.array(rows * 0.25), "ts": pa.array(rows)})
import celc
from pyspark.sql import SparkSession
queries = [
    celc.compile(path.read_text(), name=path.name, order_by="ts")
    for path in sorted(folder.glob("*.cel"))
]
spark = (SparkSession.builder.master("local[1]").config("spark.driver.bindAddress", "127.0.0.1")
         .config("spark.python.worker.reuse", "false").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "1").getOrCreate())
frame = spark.createDataFrame(events.to_pandas(), "type STRING, id INT, value DOUBLE, ts LONG")

def here():
    return [len(query.match_table(events)) for query in queries]

def there():
    return [query.match(frame).count() for query in queries]

found = [here(), there()] if order == "driver first" else [there(), here()]
print(json.dumps(found))
spark.stop()
"""


def _worker(kind: str, folder: Path) -> Path:
    """A Python for Spark's workers that has this of celc."""
    places = {
        "celc": [Path(celc.__file__).parents[1], Path(celc_runtime.__file__).parents[1]],
        "nothing": [],
        "another version": [folder / "other"],
    }[kind]
    if kind == "another version":
        other_version(folder / "other")
    path = os.pathsep.join(map(str, [*places, sysconfig.get_paths()["purelib"]]))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.long
@pytest.mark.parametrize("order", ["driver first", "workers first"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_and_its_workers_share_a_cache(kind: str, order: str, tmp_path: Path) -> None:
    for name, text in (PLANS | {"tables": MORE_PLANS["tables"]}).items():
        (tmp_path / f"{name.replace(' ', '_')}.cel").write_text(DECLARED + text)
    done = subprocess.run(
        [sys.executable, "-c", _JOB, order, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "PYSPARK_PYTHON": str(_worker(kind, tmp_path)),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "CELC_CACHE_DIR": str(tmp_path / "cache"),
            "NUMBA_OPT": "1",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first == second
    assert all(first)


# --- nothing in the folder makes a query fail ----------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own; warnings are given again, here and afterwards."""
    monkeypatch.setenv("CELC_CACHE_DIR", str(tmp_path / "cache"))
    _forget()
    yield tmp_path / "cache"
    _forget()


def _forget() -> None:
    """The folder is looked for again, and the warning about it is given again."""
    bootstrap.cache_root.cache_clear()
    vars(warnings).pop("__celc_warned__", None)


_KERNEL = """
def answer(array):
    return array[0] + 1
"""


def _answered(values: Any = None) -> list[int]:
    """What a function says that a new process would load; how often it was loaded, and compiled."""
    module: dict[str, Any] = {"__name__": "some_module", "__celc_text__": _KERNEL}
    exec(_KERNEL, module)
    function = kernels.njit(module["answer"])
    found = int(function(np.ones(1, np.int64) if values is None else values))
    stats = function.compiled.stats
    return [found, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]


def _sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


class _Raises:
    def __reduce__(self) -> Any:
        return eval, ("1 / 0",)


def _no_description(data: bytes) -> bytes:
    """What was kept, but what is told of the function: machine code loads, and then it fails."""
    library, _, *others = machine_code._Unpickler(io.BytesIO(data[32:])).load()
    return _sealed(dumps((library, None, *others)))


_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda data: data[:-100],
    "a flipped bit": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "no pickle": lambda _: _sealed(b"no pickle"),
    "an empty pickle": lambda _: _sealed(b""),
    "half a pickle": lambda data: _sealed(data[32:-100]),
    "something else": lambda _: _sealed(pickle.dumps(None)),
    "too few parts": lambda _: _sealed(pickle.dumps((1, 2, 3, 4))),
    "no such module": lambda _: _sealed(b"cno_such_module\nC\n."),
    "no such class": lambda _: _sealed(b"cnumpy\nNoSuchClass\n."),
    "an error": lambda _: _sealed(pickle.dumps(_Raises())),
    "no description": _no_description,
}


def _file(cache: Path) -> Path:
    (file,) = cache.glob("answer-*.kernel")
    return file


@pytest.mark.filterwarnings("ignore:celc cannot keep compiled code:RuntimeWarning")
@pytest.mark.each(3)
@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=_DAMAGES.keys())
def test_a_file_that_does_not_load_is_compiled_and_written_again(
    damage: Callable[[bytes], bytes], cache: Path
) -> None:
    assert _answered() == [2, 0, 1]
    whole = _file(cache).read_bytes()
    assert _answered() == [2, 1, 0]
    _file(cache).write_bytes(damage(whole))
    assert _answered() == [2, 0, 1]
    assert _answered() == [2, 1, 0]


def test_machine_code_for_other_types_is_not_run(cache: Path) -> None:
    """A file under a wrong name: floating-point code would read integers as real numbers."""
    assert _answered(np.ones(1)) == [2, 0, 1]
    real = _file(cache).read_bytes()
    _file(cache).unlink()
    assert _answered() == [2, 0, 1]
    _file(cache).write_bytes(real)
    with pytest.warns(RuntimeWarning, match="cannot be loaded: TypeError: it is compiled for"):
        assert _answered() == [2, 0, 1]
    assert _answered() == [2, 1, 0]


def test_bytecode_that_does_not_load_is_compiled_and_written_again(cache: Path) -> None:
    """The other kind of file, in processes that load the runtime out of its text."""
    (pickled,) = _pickles({"one": PLANS["plain"]}, cache.parent)
    script = """
import json, pickle, sys
query = pickle.load(open(sys.argv[1], "rb"))
print(json.dumps(query.plan.name))
"""

    def loaded() -> None:
        env = {"CELC_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "1"}
        assert run(script, pickled, alone=True, **env) == "query"

    loaded()
    files = {path: path.read_bytes() for path in cache.glob("*.code")}
    assert len(files) == 2
    for wrong in (b"no bytecode", marshal.dumps({"a": 1})):
        for path in files:
            path.write_bytes(_sealed(wrong))
        loaded()
        assert {path: path.read_bytes() for path in cache.glob("*.code")} == files


def test_a_file_that_others_can_write_is_not_loaded(cache: Path) -> None:
    _answered()
    _file(cache).chmod(0o666)
    assert _answered() == [2, 0, 1]
    assert _file(cache).stat().st_mode & 0o777 == 0o600
    assert _answered() == [2, 1, 0]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root")
def test_a_file_of_another_user_is_not_loaded(cache: Path) -> None:
    _answered()
    os.chown(_file(cache), 12345, 12345)
    assert _answered() == [2, 0, 1]
    assert _file(cache).stat().st_uid == os.getuid()
    assert _answered() == [2, 1, 0]


def test_only_files_are_loaded(cache: Path) -> None:
    """No link, whose target another may own, no pipe, which would wait for ever, no folder."""
    _answered()
    file = _file(cache)
    elsewhere = cache.parent / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert _answered() == [2, 0, 1]
    assert not file.is_symlink()
    file.unlink()
    os.mkfifo(file)
    assert _answered() == [2, 0, 1]
    assert _answered() == [2, 1, 0]
    file.unlink()
    file.mkdir()
    with pytest.warns(RuntimeWarning, match="directory"):
        assert _answered() == [2, 0, 1]


# --- the way to the folder ------------------------------------------------------------------------


def _root_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    monkeypatch.setenv("CELC_CACHE_DIR", str(path))
    bootstrap.cache_root.cache_clear()
    _forget()
    return bootstrap.cache_root()


@pytest.mark.usefixtures("cache")
def test_a_folder_that_others_can_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_, own = tmp_path / "open", tmp_path / "own"
    for mode, fine in [(0o777, False), (0o770, False), (0o1777, True), (0o755, True)]:
        open_.mkdir(exist_ok=True)
        open_.chmod(mode)
        for path in (open_ / "cache", open_ / "below" / "cache"):
            if fine:
                assert _root_of(path, monkeypatch) == path
                continue
            with pytest.warns(RuntimeWarning, match=f"others can write to {open_}, and so replace"):
                assert _root_of(path, monkeypatch) is None
    # A link, and the folder that it leads to, have to be safe on both ways.
    open_.chmod(0o777)
    own.mkdir()
    (own / "link").symlink_to(open_)
    (open_ / "link").symlink_to(own)
    for path in (own / "link" / "cache", open_ / "link" / "cache"):
        with pytest.warns(RuntimeWarning, match="and so replace"):
            assert _root_of(path, monkeypatch) is None
    open_.chmod(0o1777)
    for path in (own / "link" / "cache", open_ / "link" / "cache"):
        assert _root_of(path, monkeypatch) == path


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root")
@pytest.mark.usefixtures("cache")
def test_a_folder_below_one_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    (theirs / "cache").mkdir(mode=0o700, parents=True)
    os.chown(theirs, 12345, 12345)
    with pytest.warns(RuntimeWarning, match=f"{theirs} belongs to another user, who can replace"):
        assert _root_of(theirs / "cache", monkeypatch) is None
    # A link that another has put, even in a folder with the sticky bit, is theirs to change.
    own.mkdir(mode=0o700)
    tmp_path.chmod(0o1777)
    (tmp_path / "link").symlink_to(own)
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    with pytest.warns(RuntimeWarning, match="link belongs to another user"):
        assert _root_of(tmp_path / "link" / "cache", monkeypatch) is None
