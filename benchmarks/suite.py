"""All benchmarks of celc as one suite.

    python benchmarks/suite.py [--full] [--only PART,…] [--record] [--repetitions N]
    python benchmarks/suite.py --compare [OLD NEW]
    python benchmarks/suite.py --table [RECORD]
    python benchmarks/suite.py --plot

Without options: the quick mode, about two minutes of CPU time. A figure is the median of its
repetitions, the best one behind it, then the median ratio to the calibration kernel, which is timed
before and after each repetition. Where there is a goal, the line says whether the ratio reaches it,
which decides, and whether the figure itself does, on this machine in this minute.

`--record` writes benchmarks/records/suite-….json. `--compare` sets two records beside each other,
or the newest two of one mode, and exits with 1 where something got slower by more than noise.
`--table` prints the figures of a record that have a goal, as Markdown. `--plot` draws all records.
docs/benchmarks.md says what each figure means.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from celc_runtime.jit.kernels import compiling
from common import Calibration, Figure, Settings, environment
from compare import FORMAT, RecordError, all_records, as_plain, compare, read_record, write_record

PARTS = {
    "kernel": "the update alone; few events that matter; beside the record",
    "output": "matches into buffers and as Arrow batches, attributes",
    "growth": "cost and memory against window, stream length and states; delay",
    "ties": "simultaneous events, allowed and there, beside ordered ones",
    "table": "from Arrow table to Arrow table",
    "baselines": "what a user would write by hand, with the same matches",
    "start": "the start of commands, of a module and of a compilation",
    "spark": "Spark jobs with many keys, by the CPU time of all their processes",
    "ranges": "Spark jobs without keys: two time ranges beside one, on the clock",
    "self-joins": "Spark jobs beside joins as a user would write them, by CPU time",
    "streaming": "streams in their steady state, beside Spark's own count",
}
MODULES = {
    "baselines": "baselines.by_hand",
    "start": "first_answer",
    "ranges": "time_ranges",
    "self-joins": "self_joins",
}
"""The modules of parts that are not in the module of their name."""
ONLY_FULL = ("spark", "ranges", "self-joins", "streaming")
"""Parts that run in the quick mode only where they are asked for."""


# --- running --------------------------------------------------------------------------------------


def figures_of(part: str, settings: Settings) -> Iterator[Figure]:
    """The figures of one part."""
    module = importlib.import_module(MODULES.get(part, part))
    for figure in module.figures(settings):
        yield replace(figure, part=part)


def measure(parts: Sequence[str], settings: Settings) -> list[Figure]:
    """All figures of the parts; shows each as soon as it is there."""
    found = []
    for part in parts:
        print(f"\n{part}: {PARTS[part]}", flush=True)
        for figure in figures_of(part, settings):
            found.append(figure)
            print(line(figure), flush=True)
    return found


def line(figure: Figure) -> str:
    """A figure for people."""
    median = statistics.median(figure.values)
    ratio = ""
    if figure.calibrated and figure.higher_is_better:
        ratio = f"ratio {statistics.median(figure.normal):.4f}"
    return (
        f"  {figure.name:66} {shown(median, figure.unit):>16} (best "
        f"{shown(figure.best, figure.unit)}) {ratio:13} {verdict(figure)}"
    ).rstrip()


def shown(value: float, unit: str) -> str:
    """A number in its unit, as people read it."""
    match unit:
        case "s":
            return f"{value:,.3f} s" if value >= 0.1 else f"{value * 1e3:,.3f} ms"
        case "times":
            return f"{value:,.3f} ×"
        case "bytes":
            return f"{value / 2**20:,.2f} MiB"
        case _ if unit.endswith("/s"):
            return f"{value / 1e6:,.2f} M {unit}"
        case _:
            return f"{value:,.6g} {unit}"


def verdict(figure: Figure) -> str:
    """Whether the goal is reached, where there is one."""
    by_ratio, here = figure.missed_by, figure.missed_here_by
    if figure.goal is None or by_ratio is None or here is None:
        return ""
    sign = "≥" if figure.higher_is_better else "≤"
    said = _said(by_ratio)
    if figure.calibrated:
        said += f" by ratio, {_said(here)} here"
    return f"goal {sign} {shown(figure.goal, figure.unit)}: {said}"


def _said(missed: float) -> str:
    return "reached" if missed <= 0 else f"MISSED by {missed:.1%}"


def recorded(
    asked: argparse.Namespace, settings: Settings, found: list[Figure], calibration: Calibration
) -> dict[str, Any]:
    """All that a run has to say."""
    now = datetime.datetime.now(datetime.UTC)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "format": FORMAT,
        "time": now.strftime("%H:%M:%S"),
        **environment("benchmarks/suite.py", settings.events),
        "date": now.date().isoformat(),
        "mode": "full" if asked.full else "quick",
        "repetitions": settings.repetitions,
        "cpu_seconds": round(own.ru_utime + own.ru_stime, 1),
        "calibration": {
            "median": round(statistics.median(calibration.seen)),
            "least": round(min(calibration.seen)),
            "most": round(max(calibration.seen)),
        },
        "figures": [as_plain(figure) for figure in found],
    }


def summary(found: Sequence[Figure], calibration: Calibration) -> None:
    """How the machine was, and the goals."""
    rates = [statistics.median(calibration.seen), min(calibration.seen), max(calibration.seen)]
    median, least, most = (f"{rate / 1e6:,.0f}" for rate in rates)
    print(f"\ncalibration kernel: {median} M rows/s, between {least} and {most}")
    missed = [figure for figure in found if (figure.missed_by or 0) > 0]
    goals = [figure for figure in found if figure.goal is not None]
    print(f"{len(goals) - len(missed)} of {len(goals)} goals reached")
    for figure in missed:
        print(f"  {figure.name}: {verdict(figure)}")


# --- the command line -----------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, compare or plot."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.compare is not None:
            return int(compare(*_two(asked.compare)) > 0)
        if asked.table is not None:
            return _table(*asked.table)
        if asked.plot and not (asked.record or asked.only or asked.full):
            return _plot()
        return _run(asked)
    except RecordError as problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 2


def _run(asked: argparse.Namespace) -> int:
    start = time.monotonic()
    calibration = Calibration()
    settings = Settings(asked.full, asked.repetitions or (7 if asked.full else 5), calibration)
    parts = asked.only or [p for p in PARTS if asked.full or p not in ONLY_FULL]
    with compiling():  # also where Python would read so few events
        found = measure(parts, settings)
    summary(found, calibration)
    print(f"{time.monotonic() - start:,.0f} s in all")
    if asked.record:
        print(f"recorded: {write_record(recorded(asked, settings, found, calibration))}")
    return _plot() if asked.plot else 0


def _table(path: Path | None = None, *more: Path) -> int:
    records = all_records()
    if more or (path is None and not records):
        raise RecordError("--table takes one record file, or none: then the newest there is")
    record = read_record(path or records[-1])
    print("| figure | reached here | ratio | goal | |")
    print("| --- | ---: | ---: | ---: | --- |")
    for figure in record["figures"]:
        missed = figure.missed_by
        if missed is None or not figure.compared:
            continue
        has_ratio = figure.calibrated and figure.higher_is_better
        ratio = f"{statistics.median(figure.normal):.3f}" if has_ratio else ""
        value = shown(statistics.median(figure.values), figure.unit)
        sign = "≥" if figure.higher_is_better else "≤"
        print(
            f"| {figure.name} | {value} | {ratio} | {sign} {shown(figure.goal, figure.unit)} | "
            f"{'reached' if missed <= 0 else f'missed by {missed:.0%}'} |"
        )
    return 0


def _plot() -> int:
    from plots import plot_all

    records = [read_record(path) for path in all_records()]
    if not records:
        raise RecordError("there is no record of the suite yet: run it with --record")
    for path in plot_all(records):
        print(f"plotted: {path}")
    return 0


def _two(given: list[Path]) -> tuple[Path, Path]:
    if len(given) == 2:
        return given[0], given[1]
    records = all_records()
    if given or len(records) < 2:
        raise RecordError(
            "--compare takes two record files, or none: then it takes the newest two in "
            f"benchmarks/records/, where there are {len(records)}"
        )
    mode = read_record(records[-1])["mode"]
    same = [path for path in records if path.stem.endswith(f"-{mode}")]
    if len(same) < 2:
        raise RecordError(f"there is only one record of the {mode} mode; name two files")
    return same[-2], same[-1]


def _parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise argparse.ArgumentTypeError(
            f"no part is called {', '.join(unknown) or 'nothing'}; there are {', '.join(PARTS)}"
        )
    return parts


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of repetitions (1 or more)")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="longer streams, more repetitions")
    parser.add_argument("--only", type=_parts, metavar="PART,…", help=", ".join(PARTS))
    parser.add_argument(
        "--repetitions",
        type=_count,
        metavar="N",
        help="of each measurement; of slow ones three fifths",
    )
    parser.add_argument("--record", action="store_true", help="write a record")
    parser.add_argument(
        "--compare", nargs="*", type=Path, metavar="RECORD", help="two records, or the newest two"
    )
    parser.add_argument("--table", nargs="*", type=Path, metavar="RECORD", help="as Markdown")
    parser.add_argument("--plot", action="store_true", help="draw the records (needs celc[bench])")
    return parser


if __name__ == "__main__":
    sys.exit(main())
