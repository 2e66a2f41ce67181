"""Records of the suite: written, read, and compared with each other.

A record is one JSON file with the environment and every repetition of every figure. Two records are
compared figure by figure, by their ratios to the calibration kernel. A figure counts as slower when
its median and its best repetition are worse by more than `THRESHOLD`, and the middle halves of the
repetitions do not even touch: the better quarter of the new ones is still worse than the poorer
quarter of the old ones. On one machine all that must hold of the seconds themselves as well. The
ratio alone was tried, and flags a third of the figures where nothing has changed: the calibration
kernel waits for memory, which other users of a machine slow down for it alone. A machine that is
slower as a whole shows in the seconds and not in the ratio.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import Figure

RECORDS = Path(__file__).parent / "records"
FORMAT = 1
THRESHOLD = 0.10  # as a share: on a shared machine, two runs of the same code differ by up to this


class RecordError(Exception):
    """A record that cannot be read or compared."""


# --- files ----------------------------------------------------------------------------------------


def write_record(record: dict[str, Any], folder: Path = RECORDS) -> Path:
    """Write a record into a new file, named after its time; returns the path."""
    folder.mkdir(exist_ok=True)
    time = record["time"].replace(":", "")
    path = folder / f"suite-{record['date']}-{time}-{record['mode']}.json"
    lines = [
        f" {json.dumps(key)}: {_figures_text(value) if key == 'figures' else json.dumps(value)}"
        for key, value in record.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return path


def _figures_text(figures: list[dict[str, Any]]) -> str:
    """One line for each figure, so that records can be read and compared line by line."""
    return "[\n" + ",\n".join(f"  {json.dumps(figure)}" for figure in figures) + "\n ]"


def as_plain(figure: Figure) -> dict[str, Any]:
    """A figure as JSON holds it, six digits of each number."""
    plain = asdict(figure)
    for key in ("values", "calibrated"):
        plain[key] = [float(f"{value:.6g}") for value in plain[key]]
    return plain


def read_record(path: Path) -> dict[str, Any]:
    """A record with its figures. Raises RecordError for a file that holds none of this format."""
    try:
        record = json.loads(path.read_text())
    except OSError as problem:
        raise RecordError(f"{path} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise RecordError(
            f"{path} is no record of the suite: {problem} (records of single benchmarks, *.jsonl, "
            "are not compared)"
        ) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(f"{path} is no record of the suite in format {FORMAT}")
    for plain in record["figures"]:
        plain["values"], plain["calibrated"] = tuple(plain["values"]), tuple(plain["calibrated"])
    record["figures"] = [Figure(**plain) for plain in record["figures"]]
    return record


def all_records(folder: Path = RECORDS) -> list[Path]:
    """The suite's records in a folder, the oldest first."""
    return sorted(folder.glob("suite-*.json"), key=lambda path: path.stem.split("-")[1:5])


# --- comparing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in two records. `worse`: by what share its median is worse (negative: better);
    None where the figure cannot be compared, for the `reason` given."""

    name: str
    before: float | None
    after: float | None
    worse: float | None
    beyond_noise: bool
    reason: str = ""

    @property
    def is_slower(self) -> bool:
        """Worse by more than noise explains."""
        return self.worse is not None and self.worse > THRESHOLD and self.beyond_noise

    @property
    def is_faster(self) -> bool:
        """Better by more than noise explains."""
        return self.worse is not None and self.worse < -THRESHOLD and self.beyond_noise


def changes(
    before: Iterable[Figure], after: Iterable[Figure], *, same_machine: bool
) -> Iterator[Change]:
    """What became of each figure of either record."""
    old = {figure.name: figure for figure in before if figure.compared}
    new = {figure.name: figure for figure in after if figure.compared}
    for name in dict.fromkeys([*old, *new]):
        if name not in new or name not in old:
            reason = "not in the new record" if name not in new else "not in the old record"
            yield Change(name, None, None, None, False, reason)
        elif old[name].context != new[name].context or old[name].unit != new[name].unit:
            yield Change(name, None, None, None, False, "other sizes")
        else:
            yield _change(old[name], new[name], same_machine)


def _change(old: Figure, new: Figure, same_machine: bool) -> Change:
    found = [_worse(_costs(old, old.normal), _costs(new, new.normal))]
    if same_machine and old.calibrated:
        found.append(_worse(_costs(old, old.values), _costs(new, new.values)))
    shares = [share for some, _ in found for share in some]
    # What all of them agree on; nothing where they contradict each other.
    agree = all(share > 0 for share in shares) or all(share < 0 for share in shares)
    worse = min(shares, key=abs) if agree else 0.0
    before, after = statistics.median(old.normal), statistics.median(new.normal)
    return Change(old.name, before, after, worse, all(apart for _, apart in found))


def _worse(was: list[float], costs: list[float]) -> tuple[tuple[float, float], bool]:
    """By what share the median and the least cost have grown; whether the middle halves are
    apart."""
    median = statistics.median(costs) / statistics.median(was) - 1
    least = min(costs) / min(was) - 1
    (low, high), (low_was, high_was) = quartiles(costs), quartiles(was)
    return (median, least), low > high_was or high < low_was


def _costs(figure: Figure, values: Sequence[float]) -> list[float]:
    """The values as costs: then more is worse for every unit."""
    return [1 / value if figure.higher_is_better else value for value in values]


def quartiles(values: list[float]) -> tuple[float, float]:
    """The ends of the middle half of some values, one or more."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What else than the code is not the same in two records."""
    keys = ("machine", "cores", "python", "numba", "numpy", "pyarrow", "mode", "repetitions")
    return [
        f"{key}: {before.get(key)} → {after.get(key)}"
        for key in keys
        if before.get(key) != after.get(key)
    ]


def compare(first: Path, second: Path) -> int:
    """Show what two records say about each other; the number of figures that got slower."""
    before, after = read_record(first), read_record(second)
    print(f"{first.name} ({before['commit']}) → {second.name} ({after['commit']})")
    for line in differences(before, after):
        print(f"  differs: {line}")
    for record in (before, after):
        if record["load"] > record["cores"]:
            print(
                f"  the machine was busy: load {record['load']} on {record['cores']} cores at "
                f"{record['time']}; expect more noise than the threshold allows for"
            )
    machine = ("machine", "cores", "system")
    same_machine = all(before.get(key) == after.get(key) for key in machine)
    found = list(changes(before["figures"], after["figures"], same_machine=same_machine))
    slower = [change for change in found if change.is_slower]
    faster = [change for change in found if change.is_faster]
    skipped = [change for change in found if change.worse is None]
    for title, group in (("SLOWER", slower), ("faster", faster)):
        for change in sorted(group, key=lambda change: -abs(change.worse or 0)):
            print(
                f"  {title}  {change.name:60} {change.before:10.4g} → {change.after:10.4g} "
                f"(cost {change.worse:+.1%})"
            )
    for reason in dict.fromkeys(change.reason for change in skipped):
        names = [change.name for change in skipped if change.reason == reason]
        print(f"  not compared, {reason}: {len(names)} ({', '.join(names[:3])}, …)")
    same = len(found) - len(slower) - len(faster) - len(skipped)
    print(
        f"  {len(slower)} slower, {len(faster)} faster, {same} the same within noise "
        f"(more than {THRESHOLD:.0%}, and the middle halves of the repetitions apart)"
    )
    return len(slower)
