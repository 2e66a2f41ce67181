"""What queries cost by their shape and by the amounts of their data: the model of `celc size`.

    python benchmarks/scale.py [--record] [--turns N] [--only batch|streams]
    python benchmarks/scale.py --beyond [--record]
    python benchmarks/scale.py --fit FILE ...

Queries of many shapes (`scale_queries.py`) run over several sizes, in a warm session on two cores:
a batch job reads Parquet and writes its matches as Parquet; a stream gets files one by one.
Each run tells CPU seconds of all processes, the least of some turns, and bytes shuffled and
written; `--record` keeps them, one line each, below `records`. `--fit` reads such lines, and writes
the model that celc brings (`measured.json`).

`--beyond` runs queries that were not fitted, and some that were, at sizes at least four times
beyond the largest that was, and sets what the model says beside what they cost.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import event_log
import scale_batch
import scale_streams
from common import environment
from scale_batch import Measured
from scale_fit import Fit, Point, fit
from scale_queries import FITTED, FRESH, Design, compiled
from scale_streams import Streamed
from spark_jobs import session

from celc.interfaces.cli.sizing import calibration
from celc.interfaces.cli.sizing.model import MEASURED, Model, of_one_task, terms
from celc.interfaces.cli.sizing.shape import Shape

SIZES = (1_000_000, 3_000_000)
"""Rows. Fewer than 2¹⁸ are read by one task, which is another plan."""

BEYOND = (12_000_000, 15_000_000, 18_000_000)

SIZES_OF_BATCHES = (40_000, 120_000)
"""Rows of a micro-batch."""

BEYOND_OF_BATCHES = (480_000, 600_000, 720_000)

RECORDS = Path(__file__).parent / "records"

_OF_FILES = ("real number or text of an end", "other value of an end")
"""Terms that only the size of a file has: CPU, where they may stand for others, is told worse."""

_OF_ANSWERS = ("column of the answer", "match", "end", *_OF_FILES)

COSTS = {
    "batch cpu": ("batch", "seconds", None),
    "batch shuffle": ("batch", "shuffled", ("event", "byte of an event", "row")),
    "batch answer": ("batch", "written", _OF_ANSWERS),
    "batch memory": ("batch", "peak", ("job", "event", "byte of an event")),
    "stream cpu": ("stream", "seconds", None),
    "stream checkpoint": ("stream", "written", ("task", "event", "byte of an event", "key")),
    "stream state": ("stream", "state", ("task", "event of the state", "byte of the state", "key")),
}
"""Each cost, with the kind of run and the field that was measured, and the terms that it can have;
None: all but _OF_FILES. Rows that cannot matter do not come to a worker, so its memory has none."""


def measure(designs: Sequence[Design], sizes: Sequence[int], turns: int) -> Iterator[Measured]:
    """Run batch jobs, in one session."""
    with tempfile.TemporaryDirectory(prefix="celc-log-") as log:
        settings = {**event_log.SETTINGS, "spark.eventLog.dir": f"file:{log}"}
        with session(settings) as spark:
            for one in scale_batch.measured(spark, designs, sizes, turns):
                of = event_log.sums_of(Path(log), one.job)
                print(_line(one), flush=True)
                yield replace(one, shuffled=of.shuffled, held=of.held)


def measure_streams(streams: Sequence[Streamed], sizes: Sequence[int]) -> Iterator[Measured]:
    """Run streams, in one session."""
    with session() as spark:
        for one in scale_streams.measured(spark, streams, sizes):
            print(_line(one), flush=True)
            yield one


def _line(one: Measured) -> str:
    return (
        f"{one.kind} {one.design:24} {one.rows:>11,} rows {one.matches:>11,} matches "
        f"{one.seconds:8.2f} s of CPU {one.seconds / one.rows * 1e6:6.2f} µs a row "
        f"{one.clock:8.2f} s {one.peak >> 20:6} MiB {one.written:12,} bytes written "
        f"{one.state:12,} of state"
    )


def points(found: Iterable[Measured], kind: str, field: str) -> list[Point]:
    """What was measured of a cost, with its terms."""
    made = []
    for one in found:
        cost = getattr(one, field)
        if cost and one.kind == kind:
            made.append(Point(one.design, _terms(one, field), cost))
    return made


def _steps_of_event(one: Measured) -> float:
    """The steps of the search for each event that can matter."""
    of = _terms(one, "")
    return of["step of a search"] / of["event"]


def _terms(one: Measured, field: str) -> dict[str, float]:
    if one.kind == "batch":
        design = next(each for each in DESIGNS if each.name == one.design)
        of = scale_batch.amounts(design, one.rows, one.matches)
        found = terms(_shape(design), of)
        return of_one_task(found, of.tasks) if field == "peak" else found
    stream = next(each for each in STREAMS if each.design.name == one.design)
    return terms(_shape(stream.design), stream.amounts(one.rows, one.matches))


@cache
def _shape(design: Design) -> Shape:
    return compiled(design).shape


DESIGNS = (*FITTED, *FRESH)
STREAMS = (*scale_streams.FITTED, *scale_streams.FRESH)


def fitted(found: Sequence[Measured]) -> dict[str, Any]:
    """The costs of a model."""
    made = {}
    for cost, (kind, field, allowed) in COSTS.items():
        known = points(found, kind, field)
        if not known:
            continue
        names = allowed or [
            name for name in known[0].terms if name not in _OF_FILES and _differs(known, name)
        ]
        model: Fit = fit(known, names, [name for name in _ALWAYS if name in names])
        made[cost] = {
            "terms": {name: float(f"{value:.4g}") for name, value in model.terms.items()},
            "factor": round(model.factor, 3),
            "most rows": max(one.rows for one in found if one.kind == kind),
        }
        worst = max(model.factors, key=lambda one: abs(math.log(one)))
        print(f"{cost}: {made[cost]}; the worst that was left out: {worst:.2f}")
        for point, factor in zip(known, model.factors, strict=True):
            if abs(math.log(factor)) > math.log(1.2):
                print(f"    {point.name}, {point.cost:,.4g}: {factor:.2f}")
    return made


_ALWAYS = ("job", "row", "event", "step of a search")
"""Terms that stay in each model that can have them."""


def _differs(known: Sequence[Point], name: str) -> bool:
    return any(point.terms[name] for point in known)


def beside(found: Sequence[Measured]) -> None:
    """Print what the model says beside what was measured."""
    model = Model(json.loads(MEASURED.read_text("utf-8")))
    for cost, (kind, field, _) in COSTS.items():
        of = [one for one in found if one.kind == kind and getattr(one, field)]
        if of:
            print(f"\n{cost}: measured, predicted (interval), measured beside predicted")
        for one in of:
            told, was = model.cost(cost, _terms(one, field)), getattr(one, field)
            print(
                f"{one.design:24} {one.rows:>11,} rows {was:14,.4g} {told.value:14,.4g} "
                f"({told.low:,.4g} to {told.high:,.4g})  {was / told.value:5.2f}"
            )


def write_model(found: Sequence[Measured], machine: dict[str, Any]) -> None:
    """Write the model that celc brings."""
    largest = [one for one in found if one.held and one.rows == max(SIZES)]
    made = {
        "date": datetime.date.today().isoformat(),
        "machine": machine["machine"],
        "cores": 2,
        "calibration": calibration.seconds(),
        "busy": round(statistics.median(one.held / one.clock / 2 for one in largest), 2),
        "most steps": max(_steps_of_event(one) for one in found),
        "costs": fitted(found),
    }
    MEASURED.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", "utf-8")


# --- the command line -----------------------------------------------------------------------------


def main() -> int:
    """Measure, fit or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=3, help="of a batch job")
    parser.add_argument("--sizes", type=int, nargs="+", help="rows; of a stream in a micro-batch")
    parser.add_argument("--designs", nargs="+", metavar="NAME")
    parser.add_argument("--only", choices=("batch", "stream"))
    parser.add_argument("--beyond", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--fit", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--beside", type=Path, nargs="+", metavar="FILE", help="as --beyond prints")
    given = parser.parse_args()
    machine = environment("benchmarks/scale.py", 0)
    if given.fit or given.beside:
        files = given.fit or given.beside
        lines = [json.loads(line) for file in files for line in file.open(encoding="utf-8")]
        found = _least(Measured(**line) for line in lines if "design" in line)
        write_model(found, machine) if given.fit else beside(found)
        return 0
    kind = "scale-beyond" if given.beyond else "scale"
    record = RECORDS / f"{kind}-{machine['date']}.jsonl" if given.record else None
    _keep(record, machine)
    found = []
    for one in _measured(given):
        _keep(record, asdict(one))
        found.append(one)
    if given.beyond:
        beside(found)
    return 0


def _keep(record: Path | None, line: Mapping[str, Any]) -> None:
    """Add a line to a record at once: a run takes long."""
    if record is not None:
        with record.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")


def _measured(given: argparse.Namespace) -> Iterator[Measured]:
    beyond = given.beyond
    if given.only != "stream":
        designs = [one for one in DESIGNS if one.name in (given.designs or ())]
        sizes = given.sizes or (BEYOND if beyond else SIZES)
        chosen = designs or (FRESH if beyond else FITTED)
        yield from measure(chosen, sizes, given.turns)
    if given.only != "batch":
        streams = [one for one in STREAMS if one.design.name in (given.designs or ())]
        sizes = given.sizes or (BEYOND_OF_BATCHES if beyond else SIZES_OF_BATCHES)
        all_streams = scale_streams.FRESH if beyond else scale_streams.FITTED
        yield from measure_streams(streams or all_streams, sizes)


def _least(found: Iterable[Measured]) -> list[Measured]:
    """The run of the least CPU of each job that was measured several times, with the least memory
    of these: a worker can hold more than its job needs, and never less."""
    least: dict[tuple[str, str, int], Measured] = {}
    for one in found:
        key = (one.kind, one.design, one.rows)
        other = least.get(key, one)
        best = min(one, other, key=lambda run: run.seconds)
        least[key] = replace(best, peak=min(one.peak, other.peak))
    return list(least.values())


if __name__ == "__main__":
    sys.exit(main())
