"""The conformance cases: queries with streams and their exact answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from places import TESTS

CASES_FOLDER = TESTS / "cases"


@dataclass(frozen=True)
class Case:
    """One case: the text of a `.cel` file, the stream, and every complex event of the answer.

    `options` are those of the call. `error` is why the query is an error, in place of an answer.
    """

    name: str
    query: str
    events: list[dict[str, Any]]
    expected: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def order_by(self) -> tuple[str, ...] | None:
        """The order columns of the call."""
        return tuple(self.options["order_by"]) if "order_by" in self.options else None

    @property
    def is_common(self) -> bool:
        """Whether its events have the columns of most cases, and `ts` is a number."""
        return "mileage" not in self.query and "ts: TIMESTAMP" not in self.query


# Cases with parts of the language that are not there yet.
_NOT_BUILT = frozenset(
    f"24-local-windows/{number:03}" for number in (11, 12, 34, 51, 55, 56, 61, 62, 64, 66)
)


def case_stems(folder: Path = CASES_FOLDER) -> list[str]:
    """The names of the files of cases, without `.jsonl`, in order."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


def load_cases(stem_prefix: str | None = None, folder: Path = CASES_FOLDER) -> list[Case]:
    """The cases with answers of all files, or of those whose names begin with `stem_prefix`, in
    order.

    ValueError where there are no such files, or where two cases have one name.
    """
    return [case for case in _loaded(stem_prefix, folder) if not case.error]


def load_errors() -> list[Case]:
    """The cases in which the query is an error."""
    return [case for case in _loaded(None, CASES_FOLDER) if case.error]


def _loaded(stem_prefix: str | None, folder: Path) -> list[Case]:
    stems = [stem for stem in case_stems(folder) if stem.startswith(stem_prefix or "")]
    if not stems:
        raise ValueError(f"no files of cases like {stem_prefix or ''}*.jsonl in {folder}")
    cases: list[Case] = []
    names: set[str] = set()
    for stem in stems:
        for line in (folder / f"{stem}.jsonl").read_text(encoding="utf-8").splitlines():
            case = Case(**json.loads(line))
            if case.name in names:
                raise ValueError(f"two cases are called {case.name}")
            names.add(case.name)
            if case.name not in _NOT_BUILT:
                cases.append(case)
    return cases
