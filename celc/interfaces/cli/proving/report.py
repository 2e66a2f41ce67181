"""The report of a proof: in words for who signs, and as JSON that lies beside the module.

The JSON holds the digest of the module. `celc prove --check` compares it with the file at hand, so
a module that was changed after its proof has none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from celc.interfaces.cli.problems import CommandProblem, words
from celc.verify.prove.verdict import Verdict
from celc.version import VERSION

FORMAT = 1
"""The number of the form of the JSON, which changes when a reader would have to."""

HEADINGS = {
    "wrong": "WRONG",
    "exact": "proved exactly",
    "bounded": "proved up to a bound",
    "not decided": "not decided",
    "tested": "tested only",
    "assumed": "assumed",
}
"""The kinds of verdicts in the order of the report, with their words."""

Proofs = Sequence[tuple[str, Sequence[Verdict]]]


def digest(module: bytes) -> str:
    """The digest of the bytes of a module."""
    return f"sha256:{hashlib.sha256(module).hexdigest()}"


def as_json(module: bytes, name: str, proofs: Proofs) -> dict[str, Any]:
    """The report as an object."""
    return {
        "format": FORMAT,
        "celc": VERSION,
        "module": name,
        "digest": digest(module),
        "queries": [
            {
                "query": query,
                "seconds": round(sum(one.seconds for one in verdicts), 3),
                "steps": [{**asdict(one), "seconds": round(one.seconds, 3)} for one in verdicts],
            }
            for query, verdicts in proofs
        ],
    }


def report_path(module: Path) -> Path:
    """Where the report of a module lies: beside it."""
    return module.with_name(f"{module.stem}.proof.json")


def in_words(report: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a report for people."""
    yield f"module {report['module']}, {report['digest']}, by celc {report['celc']}"
    for query in report["queries"]:
        yield ""
        yield f"query {query['query']} ({query['seconds']:.1f} s of CPU)"
        for kind, heading in HEADINGS.items():
            steps = [one for one in query["steps"] if one["kind"] == kind]
            if steps:
                yield f"  {heading}:"
            for step in steps:
                yield f"    {step['step']}: {step['what']}"
                if step["counterexample"] is not None:
                    yield f"      {step['counterexample']}"
    yield ""
    yield conclusion(report)


def conclusion(report: Mapping[str, Any]) -> str:
    """The last line: whether some step is wrong, and otherwise how far the others go."""
    steps = [step for query in report["queries"] for step in query["steps"]]
    counts = {kind: sum(one["kind"] == kind for one in steps) for kind in HEADINGS}
    if counts["wrong"]:
        many = f"{counts['wrong']} steps are" if counts["wrong"] > 1 else "1 step is"
        return f"{many} wrong: this is a mistake of celc; do not use the module"
    told = ", ".join(f"{counts[kind]} {HEADINGS[kind]}" for kind in HEADINGS if counts[kind])
    return f"no step is wrong: {told}"


def is_wrong(report: Mapping[str, Any]) -> bool:
    """Whether some step is wrong."""
    return any(one["kind"] == "wrong" for query in report["queries"] for one in query["steps"])


def is_report(path: Path) -> bool:
    """Whether a file is a report, which a new one may replace."""
    try:
        read_report(path)
    except CommandProblem:
        return False
    return True


def read_report(path: Path) -> dict[str, Any]:
    """The report in a file. Raises CommandProblem."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    except ValueError as problem:
        raise CommandProblem(f"{path} is no JSON: {problem}") from None
    keys = {"format", "celc", "module", "digest", "queries"}
    if not isinstance(found, dict) or not keys <= found.keys():
        raise CommandProblem(f"{path} is no report of celc prove")
    if found["format"] != FORMAT:
        raise CommandProblem(
            f"{path} has the format {found['format']}, and this celc reads {FORMAT}: "
            f"use celc {found['celc']}"
        )
    return found
