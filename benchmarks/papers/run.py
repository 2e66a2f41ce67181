"""`make papers`: makes the figures of the papers again, and says whether their sentences hold.

    python benchmarks/papers/run.py [--small] [--only cel,sase/figure_4] [--record]
    python benchmarks/papers/run.py --page

Exits with 1 where a sentence does not hold. `--small`: counts of short streams, as the test suite
makes them. `--record` writes all to benchmarks/records/papers-<date>.json, in which a run of some
figures replaces these, and then docs/figures.md with its pictures; `--page` writes the page alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent.parent
if not __package__:
    sys.path[0] = str(BENCHMARKS)  # in place of this folder, which has a `cayuga` as well

from celc_runtime.jit.kernels import compiling  # noqa: E402
from common import environment  # noqa: E402

from papers import page  # noqa: E402
from papers.figures import Made  # noqa: E402

HERE = Path(__file__).resolve().parent


def scripts(only: Sequence[str] = ()) -> dict[str, ModuleType]:
    """The scripts by names such as `cel/figure_4`; those of these papers or with these names."""
    names = [
        f"{path.parent.name}/{path.stem}"
        for path in sorted(HERE.glob("*/*.py"))
        if path.stem.startswith(("figure_", "table_", "comparison_"))
    ]
    chosen = [name for name in names if not only or {name, name.partition("/")[0]} & {*only}]
    return {
        name: importlib.import_module(f"papers.{name.replace('/', '.')}")
        for name in sorted(chosen, key=page.place)
    }


def made(name: str, script: ModuleType, *, small: bool) -> dict[str, Any]:
    """What a script makes, as a record holds it, with the CPU seconds of all of it."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many matches end at one event: that is the experiment
        with nullcontext() if small else compiling():
            found: Made = script.make(small)
    return {"name": name, **asdict(found), "seconds": round(time.process_time() - start, 1)}


def lines_of(figure: dict[str, Any]) -> Iterator[str]:
    """A figure for people."""
    yield f"{figure['name']} ({figure['seconds']} s CPU)"
    for one in figure["sentences"]:
        yield f"  {'holds' if one['holds'] else 'FAILS'}  {one['text']}: {one['seen']}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make, show, and record if asked to; 1 where a sentence does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME,…", help="papers or figures")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.small and asked.record:
        parser.error("a small run has no times, so it is not recorded")
    if asked.page:
        page.write()
        return 0
    chosen = scripts([name for name in asked.only.split(",") if name])
    if not chosen:
        parser.error(f"no script is called {asked.only}; there are {', '.join(scripts())}")
    figures = []
    for name, script in chosen.items():
        figures.append(made(name, script, small=asked.small))
        print("\n".join(lines_of(figures[-1])), flush=True)
    sentences = [one for figure in figures for one in figure["sentences"]]
    held = sum(one["holds"] for one in sentences)
    print(f"{held} of {len(sentences)} sentences hold")
    if asked.record:
        _record(figures)
        page.write()
    return int(held < len(sentences))


def _record(figures: list[dict[str, Any]]) -> None:
    head = environment("benchmarks/papers/run.py", 0)
    path = BENCHMARKS / "records" / f"papers-{head['date']}.json"
    kept = json.loads(path.read_text("utf-8"))["figures"] if path.exists() else []
    names = {figure["name"] for figure in figures}
    every = [figure for figure in kept if figure["name"] not in names] + figures
    every.sort(key=lambda figure: page.place(figure["name"]))
    lines = ",\n".join(json.dumps(figure, ensure_ascii=False) for figure in every)
    told = json.dumps(head)[1:-1]
    path.write_text(f'{{{told}, "figures": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"recorded: {path}")


if __name__ == "__main__":
    sys.exit(main())
