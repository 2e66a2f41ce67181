"""The conformance cases: queries with streams and their exact answers."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from places import CASES

CASES_FOLDER = CASES / "language"


@dataclass(frozen=True)
class Case:
    """One case: the text of a `.cel` file, the stream, and every complex event of the answer.

    `options` are those of the call. `error`: why the query is refused, in place of an answer.
    `rows`: the answer of totals. `run_error`: the event at which their run ends with an error; with
    uncertain time, what is wrong with the weights of the first event.
    `parameters`: the table of each parameter set. `query_name`: the query of the file whose answer
    is expected, where it has several. `functions`: the text of a file of Python with the functions
    that the query declares.
    """

    name: str
    query: str
    events: list[dict[str, Any]]
    expected: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    rows: list[dict[str, Any]] | None = None
    run_error: Any = None
    parameters: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    query_name: str | None = None
    functions: str = ""

    def __post_init__(self) -> None:
        """ValueError for an option that no route of the tests gives to its call."""
        known = self.options.keys() <= {"order_by", "ties", "at_end"}
        if not known or self.options.get("ties", "simultaneous") != "simultaneous":
            raise ValueError(f"{self.name} has options that the tests do not know: {self.options}")

    @property
    def order_by(self) -> tuple[str, ...] | None:
        """The order columns of the call; None: it names none."""
        return tuple(self.options["order_by"]) if "order_by" in self.options else None

    @property
    def ties(self) -> str | None:
        """What the call says of events that are equal in the order columns."""
        return self.options.get("ties")

    @property
    def lasts(self) -> bool:
        """Whether its events last. They come in the order of their ends then."""
        return " LASTING " in self.query

    @property
    def in_order(self) -> list[dict[str, Any]]:
        """The events in the order of their positions, where there is one part."""
        return sorted(self.events, key=lambda event: event["end"]) if self.lasts else self.events

    @property
    def ends_late(self) -> bool:
        """Whether it is about matches that are decided later than they end."""
        later = any("decided_time" in row for row in self.expected)
        return later or "at_end" in self.options or self.name.startswith(("26-", "52-"))

    @property
    def at_end(self) -> str:
        """Whether the events are all there will ever be: `closed` or `open`."""
        return str(self.options.get("at_end", "open"))


def lasting_in(unit: str, query: str) -> str:
    """A query over events that last, with times in place of numbers of that unit (`SECONDS`)."""
    text = re.sub(r"\b(start|end): LONG", r"\1: TIMESTAMP", query)
    text = re.sub(r"(\d+) \[end\]", rf"\1 {unit} [end]", text)
    return re.sub(r"((?:end|start) (?:<=|>=|>) \d+)(?! SECOND)", rf"\1 {unit}", text)


_TIMES = {"decided_time", "start_time", "end_time", "span_start", "span_end"}


def case_stems(folder: Path = CASES_FOLDER) -> list[str]:
    """The names of the files of cases, without `.jsonl`, in order."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


def load_cases(stem_prefix: str | None = None, folder: Path = CASES_FOLDER) -> list[Case]:
    """The cases with an answer or a failing run, of all files or of those whose names begin with
    `stem_prefix`.

    ValueError where there are no such files, or where two cases have one name.
    """
    return [case for case in _all_cases(stem_prefix, folder) if not case.error]


def load_refused(folder: Path = CASES_FOLDER) -> list[Case]:
    """The cases whose queries are errors."""
    return [case for case in _all_cases(None, folder) if case.error]


def _all_cases(stem_prefix: str | None, folder: Path) -> list[Case]:
    stems = [stem for stem in case_stems(folder) if stem.startswith(stem_prefix or "")]
    if not stems:
        raise ValueError(f"no files of cases like {stem_prefix or ''}*.jsonl in {folder}")
    cases: list[Case] = []
    names: set[str] = set()
    for stem in stems:
        for line in (folder / f"{stem}.jsonl").read_text(encoding="utf-8").splitlines():
            case = Case(**with_times(json.loads(line)))
            if case.name in names:
                raise ValueError(f"two cases are called {case.name}")
            names.add(case.name)
            cases.append(case)
    return cases


def with_times(written: dict[str, Any]) -> dict[str, Any]:
    """The case with times, days and DECIMALs of events in place of their texts. `decided_time` is
    of the type of ts, where time is uncertain of low, and where events last of end; so is
    `end_time`."""
    times = dict(re.findall(r"\b(\w+): (TIMESTAMP|DATE|DECIMAL)\b", written["query"]))
    for event in written["events"]:
        for name in times.keys() & event.keys():
            text = event[name]
            if text is not None and times[name] == "DATE":
                event[name] = dt.date.fromisoformat(text)
            elif text is not None and times[name] == "DECIMAL":
                event[name] = Decimal(text)
            elif text is not None:
                event[name] = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    rows = [*written.get("expected", ()), *written.get("rows", ())]
    kind = times.get("ts", times.get("low", times.get("end")))
    for row in rows if kind == "TIMESTAMP" else ():
        for name in row.keys() & _TIMES:
            if row[name] is not None:
                row[name] = dt.datetime.fromisoformat(row[name]).replace(tzinfo=dt.UTC)
    return written
