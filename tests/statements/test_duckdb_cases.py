"""What MATCH_RECOGNIZE means in DuckDB, on DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from duckdb_cases import Case, cases

_ALL = [*cases()]
_PART = _ALL[::5]
_REST = [one for number, one in enumerate(_ALL) if number % 5]


@pytest.fixture
def connection() -> Iterator[Any]:
    made = duckdb.connect()
    yield made
    made.close()


def _wrong(case: Case, connection: Any) -> list[str]:
    for name, table in case.tables.items():
        connection.register(name, table)
    return case.wrong(connection)


@pytest.mark.parametrize("case", _PART, ids=str)
def test_part(case: Case, connection: Any) -> None:
    assert _wrong(case, connection) == []


@pytest.mark.long
@pytest.mark.parametrize("case", _REST, ids=str)
def test_rest(case: Case, connection: Any) -> None:
    assert _wrong(case, connection) == []
