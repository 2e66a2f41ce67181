"""What a person reads when the meaning of a query is wrong: messages as golden files.

Each `.cel` file under tests/errors, in the folders that CATALOGUE names, has its messages beside
it, rendered, as `.expected`. A first line `-- order-by: ts,id` names order columns, and `-- schema:
{"id": "LONG"}` has the columns of a table that is not declared, after `-- types: kind` with the
column of its event types. In the folder `instants`, simultaneous events have no order.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from places import TESTS

from celc.core.limits import SIMULTANEOUS
from celc.diagnostics.errors import CelError, Diagnostic, render_all
from celc.diagnostics.messages import (
    absences,
    aggregates,
    clauses,
    declared_types,
    functions,
    instants,
    names,
    parameters,
    queries,
    totals,
    types,
    uncertain,
    warnings,
)
from celc.diagnostics.source import Source
from celc.parse.parser import parse
from celc.resolve.resolver import resolve
from celc.resolve.types.tables import KnownTable

FOLDER = TESTS / "errors"
CATALOGUE = {
    "names": names,
    "types": types,
    "clauses": clauses,
    "declared-types": declared_types,
    "functions": functions,
    "instants": instants,
    "absences": absences,
    "aggregates": aggregates,
    "parameters": parameters,
    "queries": queries,
    "totals": totals,
    "uncertain": uncertain,
    "warnings": warnings,
}
QUERIES = sorted(path for folder in CATALOGUE for path in (FOLDER / folder).glob("*.cel"))


def order_by(text: str) -> tuple[str, ...] | None:
    named = re.match(r"-- order-by: (.*)\n", text)
    return tuple(named[1].split(",")) if named else None


def table_of(text: str) -> KnownTable | None:
    found = re.match(r"(?:-- types: (.*)\n)?-- schema: (.*)\n", text)
    if found is None:
        return None
    types = json.loads(found[2]).items()
    columns = {name: pa.uint64() if type == "uint64" else type for name, type in types}
    return KnownTable(columns, found[1])


def diagnostics_of(source: Source, ties: str | None = None) -> tuple[Diagnostic, ...]:
    file = parse(source)
    try:
        order, table = order_by(source.text), table_of(source.text)
        _, found = resolve(file, source, order_by=order, ties=ties, table=table)
    except CelError as refusal:
        return refusal.diagnostics
    return found


@pytest.mark.parametrize(
    "path", QUERIES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix(""))
)
def test_messages(path: Path, request: pytest.FixtureRequest) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    ties = SIMULTANEOUS if path.parent.name == "instants" else None
    rendered = render_all(source, diagnostics_of(source, ties)) + "\n"
    golden = path.with_suffix(".expected")
    if request.config.getoption("--update-golden"):
        golden.write_text(rendered, encoding="utf-8")
    assert golden.exists(), f"{golden.name} is missing: run pytest --update-golden and review it"
    assert rendered == golden.read_text(encoding="utf-8")


def test_every_golden_belongs_to_a_query() -> None:
    goldens = {path for folder in CATALOGUE for path in (FOLDER / folder).glob("*.expected")}
    assert goldens == {path.with_suffix(".expected") for path in QUERIES}


def messages(module: ModuleType) -> dict[str, str]:
    """The functions of a module of the catalogue, with their source."""
    functions = inspect.getmembers(module, inspect.isfunction)
    return {
        name: inspect.getsource(function)
        for name, function in functions
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and inspect.signature(function).return_annotation in (Diagnostic, "Diagnostic")
    }


@pytest.mark.parametrize("folder", CATALOGUE)
def test_every_message_has_a_golden(folder: str) -> None:
    goldens = [path.read_text(encoding="utf-8") for path in (FOLDER / folder).glob("*.expected")]
    shown = set(re.findall(r": (?:error|warning)\[([a-z-]+)\]: ", "\n".join(goldens)))
    for name, text in messages(CATALOGUE[folder]).items():
        codes = re.findall(r"(?:error|warning|unknown)\(\s*f?\"([a-z-]+)(\{.*?\})?\"", text)
        assert codes, f"{name} has no code"
        for code, varying in codes:
            assert any(
                one == code or (varying and one.startswith(code)) for one in shown
            ), f"no golden shows {code}, the message of {name}"


def test_codes_are_one_message_each() -> None:
    codes = [
        code
        for module in CATALOGUE.values()
        for text in messages(module).values()
        for code in re.findall(r"(?:error|warning|unknown)\(\s*f?\"([a-z-]+)", text)
    ]
    assert len(codes) == len(set(codes))
