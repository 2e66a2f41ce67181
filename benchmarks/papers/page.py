"""docs/figures.md: the newest record of the papers' figures as tables and pictures.

What the papers print stands in the `paper.toml` of each, with what is different here, and with the
figures that cannot be made.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parent / "records"
DOCS = HERE.parent.parent / "docs"
PAGE = DOCS / "figures.md"
IMAGES = DOCS / "images" / "figures"
PAPERS = ("cel", "cayuga", "sase", "cep2asp")
"""In the order of the page."""

_HEAD = """\
# The papers' figures, made again

`make papers` makes the figures and tables of the papers on complex events again, each by its own
script. It checks sentences about each figure: the order of lines, how fast they grow, which system
does less work. It exits with 1 if a sentence does not hold. Most sentences are about *counts*
(runs, nodes, tests), which are the same at every run and on every machine; the test suite checks
them on short streams. Seconds are CPU time, the least of some runs that take turns.

The systems that the papers measure are not run here. In their place are small implementations with
the same ways of working (`benchmarks/baselines`): automata with runs (SASE), runs whose conditions
are postponed (SASE++), and merged automata of many rules with indexes (Cayuga). They are tested
against the reference on random queries.

"""
_FOOT = """\
## Running

| command | effect |
| --- | --- |
| `make papers` | makes all figures; minutes |
| `make papers ARGS=--small` | the counts of short streams; seconds |
| `make papers ARGS="--only cel,sase/figure_4"` | some of them |
| `make papers ARGS=--record` | also writes a record, this page and its pictures |
"""


def papers() -> dict[str, dict[str, Any]]:
    """What is told of each paper."""
    return {name: tomllib.loads((HERE / name / "paper.toml").read_text("utf-8")) for name in PAPERS}


def place(name: str) -> tuple[int, int]:
    """Where a script stands on the page: by its paper, then by the order in `paper.toml`."""
    paper, _, script = name.partition("/")
    return PAPERS.index(paper), list(papers()[paper]).index(script)


def newest() -> dict[str, Any]:
    """The newest record."""
    path = max(RECORDS.glob("papers-*.json"))
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def write() -> None:
    """Write the page and its pictures."""
    record = newest()
    PAGE.write_text(text(record), encoding="utf-8")
    pictures(record)
    print(f"written: {PAGE}")


# --- text -----------------------------------------------------------------------------------------


def text(record: Mapping[str, Any]) -> str:
    """The page for a record."""
    figures = {figure["name"]: figure for figure in record["figures"]}
    lines = [
        "## Sentences",
        "",
        f"Record of {record['date']}, {record['cores']} cores of {record['machine']}.",
        "",
        "| figure | script | sentence | held | seen |",
        "| --- | --- | --- | --- | --- |",
        *_sentences(figures),
        "",
    ]
    for name, paper in papers().items():
        lines += [f"## {paper['title']}", "", f"{paper['authors']}. {paper['machine']}.", ""]
        for key, figure in figures.items():
            folder, _, script = key.partition("/")
            if folder == name:
                lines += _figure(paper[script], figure)
    lines += ["## Not made", "", "| figure | why |", "| --- | --- |"]
    for paper in papers().values():
        lines += [f"| {_short(paper)}, {one['figure']} | {one['why']} |" for one in paper["cannot"]]
    return _HEAD + "\n".join(lines) + "\n\n" + _FOOT


def _short(paper: Mapping[str, Any]) -> str:
    return str(paper["short"])


def _sentences(figures: Mapping[str, Any]) -> Iterator[str]:
    told = papers()
    for name, figure in figures.items():
        folder, _, script = name.partition("/")
        paper = told[folder]
        title = paper[script]["title"].partition(":")[0]
        for one in figure["sentences"]:
            held = "yes" if one["holds"] else "**no**"
            yield (
                f"| {_short(paper)}, {title} | `{name}` | {_cell(one['text'])} "
                f"| {held} | {_cell(one['seen'])} |"
            )


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def _figure(told: Mapping[str, Any], figure: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {told['title']}", "")
    if figure["panels"]:
        yield from (f"![{told['title']}](images/figures/{_file(figure)})", "")
    yield from (f"In the paper: {told['where']}. Different here: {told['differs']}", "")
    if told["printed"]:
        yield from ("| | printed | ours |", "| --- | --- | --- |")
        for what, printed in told["printed"]:
            yield f"| {_cell(what)} | {_cell(printed)} | {_cell(figure['ours'][what])} |"
        yield ""


def _file(figure: Mapping[str, Any]) -> str:
    return figure["name"].replace("/", "-") + ".svg"


# --- pictures -------------------------------------------------------------------------------------


def pictures(record: Mapping[str, Any], folder: Path = IMAGES) -> None:
    """Draw all figures that have lines; equal records give equal files."""
    from plots import drawing, prepare

    prepare()
    folder.mkdir(exist_ok=True)
    for figure in record["figures"]:
        panels = figure["panels"]
        if not panels:
            continue
        axes_of, save = drawing(6, 0.6 + 2.6 * len(panels), strips=len(panels))
        for axes, panel in zip(axes_of, panels, strict=True):
            for name, points in panel["lines"].items():
                axes.plot(*zip(*points, strict=True), marker=".", linewidth=1, label=name)
            for axis in panel["log"]:
                getattr(axes, f"set_{axis}scale")("log")
            axes.set_xlabel(panel["x"])
            axes.set_ylabel(panel["y"])
            axes.set_title(panel["title"])
        axes_of[0].figure.subplots_adjust(hspace=0.6)
        save(folder / _file(figure))
