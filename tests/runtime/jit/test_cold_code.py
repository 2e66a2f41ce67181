"""What Numba compiles in a process with an empty cache: our kernels, and arithmetic of NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from other_processes import DECLARED, MORE_PLANS, PLANS, run

_ARITHMETIC = ("celc_", "numba.np.", "numba.cpython.builtins", "numba.cpython.numbers")
"""An array that is assigned to a slice or to a row takes 2 s, in `numba.cpython.unicode`."""

_COMPILED = """
import json, sys
import numpy as np, pyarrow as pa
from numba.core import event

class Listener(event.Listener):
    def __init__(self):
        self.ours, self.found = [], []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__name__}"
        self.found.append([name, self.ours[-1] if self.ours else ""])
        self.ours.append(name if name.startswith("celc") else self.ours[-1] if self.ours else "")
    def on_end(self, event):
        self.ours.pop()

listener = Listener()
event.register("numba:compile", listener)
import celc
rows = np.arange(60)
events = pa.table({
    "type": pa.array(np.array(list("ABC"))[rows * 7 % 5 % 3]),
    "id": pa.array(rows % 3, pa.int32()), "value": pa.array(rows * 0.25), "ts": pa.array(rows)})
for text in json.loads(sys.argv[1]):
    query, = celc.compile(text).queries.values()
    assert len(query.match_table(events))
print(json.dumps(listener.found))
"""


@pytest.mark.parametrize(
    "plans",
    [
        pytest.param(["plain"], id="plain"),
        pytest.param([*PLANS, *MORE_PLANS], id="all", marks=pytest.mark.long),
    ],
)
def test_no_texts_are_compiled(plans: list[str], tmp_path: Path) -> None:
    every = PLANS | MORE_PLANS
    texts = [DECLARED + every[name] for name in plans]
    found = run(_COMPILED, json.dumps(texts), CELC_CACHE_DIR=str(tmp_path))
    assert len(found) > 20
    wrong = {(name, of) for name, of in found if not name.startswith(_ARITHMETIC)}
    assert not wrong
