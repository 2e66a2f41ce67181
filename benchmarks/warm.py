"""The start of a generated module in a fresh process, its cache warm, measured by `start.py`."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import Figure, Settings, Timing, duration

import celc

SECONDS = 0.2


def figures(settings: Settings) -> Iterator[Figure]:
    """CPU seconds from the import of the module to its first matches, numba being imported."""
    if importlib.util.find_spec("start") is None:
        print("  not available: there is no benchmarks/start.py")
        return
    import start

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for query, text in start.QUERIES.items():
            (folder / f"{query}.py").write_text(celc.compile(start.DECLARED + text).source)
            start.processes(folder, query, 1, cold=False)
            seconds, calibrated = [], []
            before = settings.calibrated()
            for _ in range(settings.repetitions):
                seconds.append(start.processes(folder, query, 1, cold=False)[0]["start"])
                after = settings.calibrated()
                calibrated.append(2 / (1 / before + 1 / after))
                before = after
            timing = Timing(tuple(seconds), tuple(calibrated))
            yield duration(f"warm start, {query}", timing, SECONDS)
