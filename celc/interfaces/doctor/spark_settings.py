"""Settings of Spark that cost time, or change answers, with celc.

The reasons are in docs/spark.md and docs/streaming.md. A setting is looked at where somebody has
made it, or where Spark's own value is the one that costs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.stream.session import CHANGELOG, ROCKS_DB, STORE

from celc.interfaces.doctor.findings import Finding, ok, wrong

_SMALL_BATCH = 10_000  # rows; what Spark takes where nobody has set it


@frozen
class _Rule:
    """A setting, the values that hurt, why they do, and a better one."""

    name: str
    hurts: Callable[[str], bool]
    why: str
    better: str


def _is(value: str) -> Callable[[str], bool]:
    return lambda given: given.strip().lower() == value


_RULES = (
    _Rule(
        "spark.python.worker.reuse",
        _is("false"),
        "each task starts a Python of its own, which loads NumPy, Arrow and machine code again",
        "true",
    ),
    _Rule(
        "spark.sql.session.timeZone",
        lambda given: given.strip().upper() not in ("UTC", "GMT", "ETC/UTC", "Z", "+00:00"),
        "texts and times without a zone are read in this zone, and celc run reads them in UTC",
        "UTC",
    ),
    _Rule(
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        lambda given: given.strip().isdecimal() and 0 < int(given) < _SMALL_BATCH,
        "rows reach Python in small pieces, and each piece costs",
        str(_SMALL_BATCH),
    ),
    _Rule(
        STORE,
        lambda given: not given.strip().endswith(".RocksDBStateStoreProvider"),
        "match_stream keeps its states in Spark's RocksDB store, and refuses another",
        ROCKS_DB,
    ),
    _Rule(
        CHANGELOG,
        _is("false"),
        "each micro-batch of a stream writes the whole state, and not its changes",
        "true",
    ),
    _Rule(
        "spark.sql.streaming.noDataMicroBatches.enabled",
        _is("false"),
        "matches that wait for the watermark come only with the next events",
        "true",
    ),
)


def settings_of_session(spark: Any) -> Iterator[Finding]:
    """What hurts in a session of Spark, classic or Connect.

    The time zone counts where the session has another one than UTC, also where nobody has set it:
    then it is that of the machine.
    """
    yield ok(f"Spark {spark.version}")
    values = {rule.name: spark.conf.get(rule.name, None) for rule in _RULES}
    values = {name: value for name, value in values.items() if value is not None}
    # Where nobody has chosen a store, Spark answers with what is asked, and match_stream sets it.
    if all(spark.conf.get(STORE, any_text) == any_text for any_text in ("a", "b")):
        values.pop(STORE, None)
    yield from _hurting(values, lambda name, value: f"spark.conf.set({name!r}, {value!r})")


def settings_of_file() -> Iterator[Finding]:
    """What hurts in the file with the defaults of all sessions, where there is one."""
    path = _defaults()
    if path is None:
        return
    values = {}
    for line in path.read_text("utf-8", errors="replace").splitlines():
        found = re.match(r"\s*(spark\.[\w.]+)(?:\s*=\s*|\s+)(.*?)\s*$", line)
        if found:
            values[found[1]] = found[2]
    yield ok(f"defaults of Spark: {path}")
    yield from _hurting(values, lambda name, value: f"{name} {value}")


def _defaults() -> Path | None:
    folder = os.environ.get("SPARK_CONF_DIR")
    home = os.environ.get("SPARK_HOME")
    if not folder and not home:
        return None
    path = Path(folder) if folder else Path(str(home), "conf")
    path /= "spark-defaults.conf"
    return path if path.is_file() else None


def _hurting(values: Mapping[str, str], line: Callable[[str, str], str]) -> Iterator[Finding]:
    for rule in _RULES:
        value = values.get(rule.name)
        if value is not None and rule.hurts(value):
            yield wrong(f"{rule.name} is {value}: {rule.why}", line(rule.name, rule.better))
