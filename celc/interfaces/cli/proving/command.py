"""`celc prove` and `celc compile --prove`.

Exit codes: 0 no step is wrong, 1 one is, or a module is not the one that was proved.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celc.diagnostics.files import query_files
from celc.diagnostics.source import visible
from celc.driver.pipeline import Compilation
from celc.driver.proving import proofs
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli import row_patterns
from celc.interfaces.cli.output import check_output, say, tell, written
from celc.interfaces.cli.problems import FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.proving.report import (
    as_json,
    conclusion,
    digest,
    in_words,
    is_report,
    is_wrong,
    read_report,
    report_path,
)
from celc.interfaces.cli.queries import chosen_queries, compiled, module_path, shown_command
from celc.verify.prove.verdict import Verdict


def prove(arguments: argparse.Namespace) -> int:
    """Prove the module that `celc compile` writes of query files, or check a report."""
    if arguments.check:
        return _check(arguments)
    paths, wrong = query_files(arguments.source)
    if wrong:
        raise CommandProblem("; ".join(wrong))
    check_output(arguments.output, force=arguments.force, inputs=paths, ours=is_report)
    module = module_path(paths)
    command = shown_command(arguments, paths, module)
    try:
        of_rows = language_of(*paths) is ROW_PATTERNS
    except ValueError as problem:
        raise CommandProblem(str(problem)) from None
    if of_rows:
        text = row_patterns.compiled(arguments, paths[0]).module_text(command)
        report = as_json(text.encode(), module.name, _of_rows(paths[0]))
    else:
        compilation = compiled(arguments, paths)
        text = compilation.module_text(command)
        names = [one.query.name for one in chosen_queries(compilation, arguments.query)]
        found = [one for one in proofs(compilation, text) if one[0] in names]
        report = as_json(text.encode(), module.name, found)
    if arguments.output is not None:
        _write(report, arguments.output)
    if arguments.format == "json":
        say(_text(report))
    else:
        _say(report)
    return QUERY_WRONG if is_wrong(report) else FINE


def prove_module(
    arguments: argparse.Namespace,
    compilation: Compilation | None,
    text: str,
    module: bytes,
    output: Path,
) -> int:
    """Prove a module that is about to be written, and write the report beside it. `text` is the
    module without a runtime inside; `compilation` None: it is of MATCH_RECOGNIZE."""
    path = report_path(output)
    check_output(path, force=arguments.force, inputs=arguments.source, ours=is_report)
    found = _of_rows(output) if compilation is None else list(proofs(compilation, text))
    report = as_json(module, output.name, found)
    _write(report, path)
    tell(f"celc: {path.name}: {conclusion(report)}")
    if is_wrong(report):
        tell("celc: the module is not written")
        return QUERY_WRONG
    return FINE


def _of_rows(path: Path) -> Sequence[tuple[str, Sequence[Verdict]]]:
    what = "MATCH_RECOGNIZE has passes of its own, and no step looks at them"
    return [(path.stem, [Verdict("all passes", "tested", what)])]


def _check(arguments: argparse.Namespace) -> int:
    if len(arguments.source) != 2:
        raise CommandProblem(
            "--check takes a module and its report: celc prove --check q_udf.py q_udf.proof.json"
        )
    module, path = arguments.source
    report = read_report(path)
    try:
        found = digest(module.read_bytes())
    except OSError as problem:
        raise CommandProblem(f"{module}: {problem.strerror}") from None
    if found != report["digest"]:
        tell(
            f"celc: {module.name} is not the module that was proved: its digest is {found}, and "
            f"the report is about {report['digest']}"
        )
        return QUERY_WRONG
    _say(report)
    return QUERY_WRONG if is_wrong(report) else FINE


def _say(report: Mapping[str, Any]) -> None:
    say("".join(f"{visible(line)}\n" for line in in_words(report)))


def _text(report: Mapping[str, Any]) -> str:
    return json.dumps(report, ensure_ascii=True, indent=2) + "\n"


def _write(report: Mapping[str, Any], path: Path) -> None:
    with written(path) as out:
        out.write(_text(report).encode())
