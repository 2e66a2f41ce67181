"""What Numba compiles in a process with an empty cache: our kernels, and arithmetic of NumPy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from other_processes import DECLARED, MORE_PLANS, PLANS, run
from places import ROOT
from shares import share

_ARITHMETIC = ("celc_", "numba.np.", "numba.cpython.builtins", "numba.cpython.numbers")
"""An array that is assigned to a slice or to a row takes 2 s, in `numba.cpython.unicode`."""

# Arrow reads files of the system. Of an object of Python one of its threads may let go after
# the read, and a process that ends at that moment is aborted.
_COMPILED = """
import json, sys, tempfile
import numpy as np, pyarrow as pa, pyarrow.csv
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
made = pa.table({
    "type": pa.array(np.array(list("ABC"))[rows * 7 % 5 % 3]),
    "id": pa.array(rows % 3, pa.int32()), "value": pa.array(rows * 0.25), "ts": pa.array(rows)})
types = pa.csv.ConvertOptions(column_types={"price": pa.float64()})
for text, dialect, events in json.loads(sys.argv[1]):
    query, = celc.compile(text, dialect=dialect).queries.values()
    if events:
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(events)
            file.flush()
            events = pa.csv.read_csv(file.name, convert_options=types)
    assert len(query.match_table(events or made))
print(json.dumps(listener.found))
"""


def _shown(page: str, name: str) -> str:
    """A file that a page shows."""
    found = re.search(
        rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", (ROOT / page).read_text(), re.DOTALL
    )
    assert found is not None, name
    return found[1]


def _of_pages() -> dict[str, tuple[str, str, str]]:
    """What users run first: the README's query, one with a condition between events under a `+`,
    and the first one of MATCH_RECOGNIZE."""
    query, farm = _shown("README.md", "fire.cel"), _shown("README.md", "farm.csv")
    pattern = "(T AS hot ; H AS dry) FILTER hot.value > 40"
    assert pattern in query
    under_plus = "(T AS hot ; (H AS dry)+) FILTER dry.value < hot.value AND hot.value > 40"
    page = "docs/match-recognize.md"
    return {
        "README": (query, "cel", farm),
        "another class": (query.replace(pattern, under_plus), "cel", farm),
        "row pattern": (_shown(page, "v_shape.sql"), "match_recognize", _shown(page, "quotes.csv")),
    }


def _of_plans() -> list[tuple[str, str, str]]:
    return [(DECLARED + text, "cel", "") for text in (PLANS | MORE_PLANS).values()]


@pytest.mark.long
@pytest.mark.parametrize("name", share(_of_pages(), 3))
def test_a_first_run_of_machine_code_compiles_our_kernels_and_arithmetic(
    name: str, tmp_path: Path
) -> None:
    found = run(_COMPILED, json.dumps([_of_pages()[name]]), CELC_CACHE_DIR=str(tmp_path))
    kernels = {name for name, _ in found if name.startswith("celc_")}
    assert 5 < len(kernels) < 40, sorted(kernels)
    assert not {(name, of) for name, of in found if not name.startswith(_ARITHMETIC)}


def test_a_first_run_of_few_events_compiles_nothing(tmp_path: Path) -> None:
    settings = {"CELC_CACHE_DIR": str(tmp_path), "CELC_INTERPRETED_ROWS": None}
    assert run(_COMPILED, json.dumps([*_of_pages().values()]), **settings) == []


@pytest.mark.long
def test_no_plan_compiles_texts(tmp_path: Path) -> None:
    found = run(_COMPILED, json.dumps(_of_plans()), CELC_CACHE_DIR=str(tmp_path))
    assert not {(name, of) for name, of in found if not name.startswith(_ARITHMETIC)}
