"""What was found about one thing: whether it is well, and the line to write where it is not."""

from collections.abc import Iterable
from typing import Literal

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import visible

State = Literal["ok", "missing", "wrong"]

_SIGNS: dict[State, str] = {"ok": "ok", "missing": "--", "wrong": "!!"}


@frozen
class Finding:
    """One thing that was looked at.

    `missing`: it is not there, and only some uses of celc need it. `wrong`: something will fail, or
    will be slow. `line` is what to write then: a command, or a line of Python.
    """

    state: State
    text: str
    line: str | None = None


def ok(text: str) -> Finding:
    return Finding("ok", text)


def missing(text: str, line: str) -> Finding:
    return Finding("missing", text, line)


def wrong(text: str, line: str | None = None) -> Finding:
    return Finding("wrong", text, line)


def told(findings: Iterable[Finding]) -> str:
    """The findings as lines, with what to write below each."""
    lines = []
    for one in findings:
        lines.append(f"{_SIGNS[one.state]}  {visible(one.text)}")
        if one.line is not None:
            lines.append(f"      {visible(one.line)}")
    return "".join(f"{line}\n" for line in lines)
