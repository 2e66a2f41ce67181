"""`--junit FILE`: results in the XML that continuous integration reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import visible_lines
from celc.interfaces.cli.output import written


@frozen
class Result:
    """A case with its line and time; `failure` is what is told of it where it fails."""

    name: str
    line: int
    seconds: float
    failure: str | None


@frozen
class Suite:
    """A test file with its cases; `problem`: why it could not be run."""

    name: str
    results: tuple[Result, ...]
    problem: str | None = None


def write_junit(path: Path, suites: Sequence[Suite]) -> None:
    """Write the results of files. Raises CommandProblem where the file cannot be written."""
    root = ElementTree.Element("testsuites")
    for suite in suites:
        failures = sum(one.failure is not None for one in suite.results)
        errors = int(suite.problem is not None)
        seconds = sum(one.seconds for one in suite.results)
        told = {"name": suite.name, "tests": str(len(suite.results) + errors)}
        told |= {"failures": str(failures), "errors": str(errors), "time": f"{seconds:.3f}"}
        node = ElementTree.SubElement(root, "testsuite", told)
        for one in suite.results:
            told = {"classname": suite.name, "name": visible_lines(one.name)}
            told |= {"file": suite.name, "line": str(one.line), "time": f"{one.seconds:.3f}"}
            case = ElementTree.SubElement(node, "testcase", told)
            if one.failure is not None:
                _told(case, "failure", one.failure)
        if suite.problem is not None:
            told = {"classname": suite.name, "name": "reading", "file": suite.name}
            _told(ElementTree.SubElement(node, "testcase", told), "error", suite.problem)
    ElementTree.indent(root)
    with written(path) as out:
        ElementTree.ElementTree(root).write(out, "utf-8", xml_declaration=True)
        out.write(b"\n")


def _told(case: ElementTree.Element, kind: str, text: str) -> None:
    text = visible_lines(text)
    ElementTree.SubElement(case, kind, {"message": text.partition("\n")[0]}).text = text
