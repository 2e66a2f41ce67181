"""Records as pictures: how figures moved over time, and what cost grows with.

matplotlib draws them (`pip install "celc[bench]"`). Files are SVG, the same bytes for the same
records, so that they can be kept under version control.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import Figure
from compare import RecordError, quartiles

PLOTS = Path(__file__).parent / "plots"
AGAINST = {
    "window": ("window", "window (events)"),
    "length": ("events", "length of the stream (events)"),
    "states": ("states", "events in the sequence"),
    "delay": ("dead", "dead events behind the matches"),
}
"""The figures that begin with this word: the size in their context, and what the axis says."""

_COST = "cost, in rows of the calibration kernel"


def plot_all(records: Sequence[dict[str, Any]], folder: Path = PLOTS) -> Iterator[Path]:
    """Draw the records, the oldest first; yields the files as they are written.

    Growth is drawn from the newest record that has such figures. Raises RecordError without
    matplotlib.
    """
    prepare()
    folder.mkdir(exist_ok=True)
    for part in dict.fromkeys(f.part for record in records for f in record["figures"]):
        yield _over_time(part, records, folder)
    for word, (key, label) in AGAINST.items():
        for record in reversed(records):
            found = [f for f in record["figures"] if f.name.startswith(word) and key in f.context]
            if found:
                yield _against(word, key, label, found, record, folder)
                break


def prepare() -> None:
    """Set matplotlib up, so that equal pictures are equal files. Raises RecordError without it."""
    try:
        import matplotlib
    except ImportError:
        raise RecordError('plots need matplotlib: pip install "celc[bench]"') from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "celc"
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["font.size"] = 8


def _over_time(part: str, records: Sequence[dict[str, Any]], folder: Path) -> Path:
    """The median of each figure of a part in each record, beside that in the first record.

    A strip for each first word of the names. Quotients are left out: what they relate is there.
    """
    strips: dict[str, dict[str, list[tuple[datetime.datetime, Figure]]]] = {}
    for record in records:
        time = datetime.datetime.fromisoformat(f"{record['date']}T{record['time']}+00:00")
        for figure in record["figures"]:
            if figure.part != part or not figure.compared or figure.unit == "times":
                continue
            # Streams of another length are another line.
            line = f"{figure.name} ({record['mode']})"
            strip = strips.setdefault(figure.name.split()[0].rstrip(":"), {})
            strip.setdefault(line, []).append((time, figure))
    drawn, save = drawing(9, 1 + 3 * len(strips), strips=max(1, len(strips)))
    for axes, lines in zip(drawn, strips.values(), strict=False):
        for name, points in lines.items():
            costs = [_cost(figure) for _, figure in points]
            times = [time for time, _ in points]
            shares = [cost / costs[0] if costs[0] else 1.0 for cost in costs]
            axes.plot(times, shares, marker=".", linewidth=0.8, label=name)
        axes.axhline(1.0, color="black", linewidth=0.5)
        axes.set_ylabel("cost (first record: 1)")
    drawn[0].set_title(f"{part}: calibrated medians, beside those of the first record")
    return save(folder / f"over-time-{part}.svg")


def _against(
    word: str, key: str, label: str, found: list[Figure], record: dict[str, Any], folder: Path
) -> Path:
    """Cost against a size, with the middle half of the repetitions as error bars."""
    (axes,), save = drawing(6, 4)
    for line in dict.fromkeys(figure.context.get("line", "") for figure in found):
        points = sorted(
            (figure for figure in found if figure.context.get("line", "") == line),
            key=lambda figure: figure.context[key],
        )
        costs = [[1 / value for value in figure.normal] for figure in points]
        middle = [statistics.median(values) for values in costs]
        low, high = zip(*(quartiles(values) for values in costs), strict=True)
        errors = [
            [m - least for m, least in zip(middle, low, strict=True)],
            [most - m for m, most in zip(middle, high, strict=True)],
        ]
        sizes = [figure.context[key] for figure in points]
        axes.errorbar(sizes, middle, yerr=errors, marker=".", capsize=2, linewidth=1, label=line)
    # Zero has a place on such an axis, as in "no dead events".
    axes.set_xscale("symlog" if key == "dead" else "log")
    axes.set_yscale("log")
    axes.set_xlabel(label)
    per = "match" if word == "delay" else "event"
    axes.set_ylabel(f"{_COST}, per {per}")
    axes.set_title(f"{record['date']}, {record['commit']}, {record['machine']}")
    return save(folder / f"cost-by-{word}.svg")


def drawing(
    width: float, height: float, *, strips: int = 1
) -> tuple[list[Any], Callable[[Path], Path]]:
    """Empty axes one below the other, and a function that writes them into a file."""
    from matplotlib import pyplot

    picture, drawn = pyplot.subplots(strips, figsize=(width, height), squeeze=False)
    column = [row[0] for row in drawn]

    def save(path: Path) -> Path:
        for axes in column:
            axes.grid(linewidth=0.3)
            columns = 1 + len(axes.lines) // 15
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(1.01, 1),
                fontsize=6,
                ncols=columns,
                frameon=False,
            )
        # Without a date, so that equal records give equal files.
        picture.savefig(path, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(picture)
        return path

    return column, save


def _cost(figure: Figure) -> float:
    value = statistics.median(figure.normal)
    return 1 / value if figure.higher_is_better and value else value
