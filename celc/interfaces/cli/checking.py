"""`celc check`: the messages about one file or many, as text, JSON or SARIF.

SARIF is what code hosts and editors read; its form is the OASIS standard 2.1.0.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from celc_runtime.plan.frozen import frozen

from celc.core.verdict import Verdict
from celc.diagnostics.errors import CelError, Diagnostic, render_all
from celc.diagnostics.files import SUFFIXES, query_files
from celc.diagnostics.source import Source, Span, visible, visible_json
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.problems import FILE_WRONG, FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import STANDARD_INPUT, read_source, standard_input
from celc.options import Options
from celc.version import VERSION

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@frozen
class CheckedFile:
    """The messages about one file; `source` has the name that messages use."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]
    queries: tuple[str, ...]  # the names of its queries; empty where one is wrong
    verdicts: tuple[tuple[str, Verdict], ...] = ()  # what each query is and costs, where asked for

    @property
    def errors(self) -> int:
        """The number of errors among the messages."""
        return sum(found.severity == "error" for found in self.diagnostics)


def check_paths(
    paths: Sequence[Path],
    options: Options,
    format: str,
    schema: Any = None,
    *,
    verbose: bool = False,
) -> int:
    """Check files, folders and standard input (`-`), and write the messages; returns the exit code.
    schema: the columns of tables that they do not declare. verbose: text also says what each query
    is and costs.

    A file that cannot be read is reported on standard error, and the others are still checked.
    """
    files, wrong = query_files(paths, SUFFIXES)
    checked: list[CheckedFile] = []
    for path in files:
        alone = format == "text" and len(files) == 1 and path in paths
        name = path.name if alone else path.as_posix()
        try:
            source = standard_input() if path == STANDARD_INPUT else read_source(path, name)
        except CommandProblem as problem:
            wrong.append(str(problem))
            continue
        checked.append(_check(source, options, schema, verbose=verbose))
        if format == "text":
            _write_text(checked[-1])
    if format == "json":
        _write(json_objects(checked))
    elif format == "sarif":
        _write(sarif(checked))
    elif sum(one.errors for one in checked):
        _count_errors(checked)
    for told in wrong:
        tell(f"celc: {visible(told)}")
    if wrong:
        return FILE_WRONG
    return QUERY_WRONG if any(one.errors for one in checked) else FINE


def _check(source: Source, options: Options, schema: Any, *, verbose: bool) -> CheckedFile:
    language = language_of(source.name)
    if language is ROW_PATTERNS and language.is_statement(source):
        problems = language.check(source, options)
        wrong = any(one.severity == "error" for one in problems)
        return CheckedFile(source, problems, () if wrong else (Path(source.name).stem,))
    try:
        compilation = language.compile([source], options, schema)
    except CelError as problem:
        return CheckedFile(source, problem.diagnostics, ())
    verdicts: tuple[tuple[str, Verdict], ...] = ()
    if verbose:
        from celc.interfaces.explain.verdict import verdicts_of

        verdicts = tuple(verdicts_of(compilation))
    return CheckedFile(source, compilation.warnings, compilation.names, verdicts)


# --- text -----------------------------------------------------------------------------------------


def _write_text(checked: CheckedFile) -> None:
    if checked.diagnostics:
        tell(render_all(checked.source, checked.diagnostics))
    if checked.errors:
        tell("")
        return
    names = ", ".join(visible(name) for name in checked.queries)
    count = len(checked.diagnostics)
    told = f", {count} warning{'s' if count != 1 else ''}" if count else ""
    folder = "" if "/" not in checked.source.name else f"{visible(checked.source.name)}: "
    say(f"{folder}{names}: fine{told}\n")
    for name, verdict in checked.verdicts:
        say("".join(f"{visible(line)}\n" for line in (f"query {name}", *verdict.lines())))


def _count_errors(checked: Sequence[CheckedFile]) -> None:
    count, wrong = sum(one.errors for one in checked), sum(one.errors > 0 for one in checked)
    text = f"{count} error{'s' if count != 1 else ''}"
    if len(checked) > 1:
        text += f" in {wrong} of {len(checked)} files"
    tell(text)


def _write(value: object) -> None:
    say(visible_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


# --- JSON -----------------------------------------------------------------------------------------


def json_objects(checked: Iterable[CheckedFile]) -> list[dict[str, Any]]:
    """Each message as an object. Lines and columns count from 1; the end is not included."""
    return [_json_object(one.source, found) for one in checked for found in one.diagnostics]


def _json_object(source: Source, found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity,
        "file": source.name,
        **_json_place(source, found.span),
        "message": found.message,
        "help": list(found.help),
        "related": [
            {**_json_place(source, one.span), "message": one.text} for one in found.related
        ],
        "fixes": [{**_json_place(source, fix.span), "text": fix.text} for fix in found.fixes],
    }


def _json_place(source: Source, span: Span) -> dict[str, Any]:
    line, column = source.line_and_column(span.start)
    end_line, end_column = source.line_and_column(span.end)
    return {"line": line, "column": column, "end": {"line": end_line, "column": end_column}}


# --- SARIF ----------------------------------------------------------------------------------------


def sarif(checked: Sequence[CheckedFile]) -> dict[str, Any]:
    """All messages as a SARIF 2.1.0 log of one run."""
    codes = sorted({found.code for one in checked for found in one.diagnostics})
    driver = {
        "name": "celc",
        "semanticVersion": VERSION,
        "rules": [{"id": code, "name": _camel_case(code)} for code in codes],
    }
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(one.source, found, codes.index(found.code))
                    for one in checked
                    for found in one.diagnostics
                ],
            }
        ],
    }


def _camel_case(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("-"))


def _result(source: Source, found: Diagnostic, rule: int) -> dict[str, Any]:
    text = "\n".join((found.message, *(f"help: {line}" for line in found.help)))
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": found.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(source, found.span)}],
    }
    if found.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _location(source, one.span),
                "message": {"text": one.text},
            }
            for number, one in enumerate(found.related, start=1)
        ]
    if found.fixes:
        result["fixes"] = [
            {
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": _uri(source)},
                        "replacements": [
                            {
                                "deletedRegion": _region(source, fix.span),
                                "insertedContent": {"text": fix.text},
                            }
                        ],
                    }
                ]
            }
            for fix in found.fixes
        ]
    return result


def _location(source: Source, span: Span) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(source)}, "region": _region(source, span)}


def _uri(source: Source) -> str:
    # All signs except "/" are escaped: a ":" before the first "/" would begin the name with a
    # scheme.
    return quote(source.name, safe="/")


def _region(source: Source, span: Span) -> dict[str, int]:
    line, column = source.line_and_column(span.start)
    end_line, end_column = source.line_and_column(span.end)
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }
