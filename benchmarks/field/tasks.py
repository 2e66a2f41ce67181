"""The tasks: a question in words, and in the language of each engine that can say it.

They stand in `tasks/`, a file for each data set; README.md tells how to add one. A key of a task
that is the name of an engine is its text there. `cannot` says why an engine has none: by the name
of a reason in `reasons.toml`, or in words. What has neither is shown as not written.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from data_sets import SETS, DataSet

FOLDER = Path(__file__).parent / "tasks"
NOT_WRITTEN = "nobody has written it"
NOT_EXPLAINED = "nobody has explained it"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A question.

    answer: the columns of its rows, which are ids of events: `a` is the event `a` of a match, or
    its only one, `first_a` and `last_a` the ends of a part of several. texts: by the key of the
    file. cannot: why an engine has no text. differs: which engines give another answer, and who is
    right by whose documents.
    """

    name: str
    data: DataSet
    words: str
    answer: tuple[str, ...]
    texts: dict[str, str]
    cannot: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)

    def text(self, *languages: str) -> str | None:
        """The text of the first of these languages that the task has."""
        return next((self.texts[each] for each in languages if each in self.texts), None)

    def why_not(self, engine: str) -> str:
        """Why an engine is not asked, in words."""
        return _in_words(engine, self.cannot.get(engine, NOT_WRITTEN))

    def why_other(self, engine: str) -> str:
        """Who is right where an engine has another answer, in words."""
        return _in_words(engine, self.differs.get(engine, NOT_EXPLAINED))


def _in_words(engine: str, reason: str) -> str:
    return reasons().get(engine, {}).get(reason, reason)


@cache
def reasons() -> dict[str, dict[str, str]]:
    """What engines cannot say or say otherwise, by engine and by the name of the reason."""
    return tomllib.loads((Path(__file__).parent / "reasons.toml").read_text("utf-8"))


@cache
def tasks() -> tuple[Task, ...]:
    """All tasks, in the order of the data sets and of their files.

    Raises ValueError for a file that is no TOML, for a task without words or answer, and for two of
    one name.
    """
    found = [
        _task(name, SETS[path.stem], entry) for path in _files() for name, entry in _read(path)
    ]
    names = [task.name for task in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two tasks have one name: {', '.join(sorted(twice))}")
    return tuple(found)


def task_of(name: str) -> Task:
    """The task of a name."""
    return next(task for task in tasks() if task.name == name)


def _files() -> list[Path]:
    return [FOLDER / f"{name}.toml" for name in SETS if (FOLDER / f"{name}.toml").exists()]


def _read(path: Path) -> list[tuple[str, dict[str, object]]]:
    try:
        return list(tomllib.loads(path.read_text("utf-8")).items())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"tasks/{path.name}: {error}") from error


def _task(name: str, data: DataSet, entry: dict[str, object]) -> Task:
    lacking = {"words", "answer"} - set(entry)
    if lacking:
        raise ValueError(f"{name}: it has no {' and no '.join(sorted(lacking))}")
    words, answer = entry.pop("words"), entry.pop("answer")
    cannot, differs = entry.pop("cannot", {}), entry.pop("differs", {})
    assert isinstance(answer, list)
    assert isinstance(cannot, dict)
    assert isinstance(differs, dict)
    texts = {key: str(text) for key, text in entry.items()}
    return Task(name, data, str(words), tuple(answer), texts, cannot, differs)
