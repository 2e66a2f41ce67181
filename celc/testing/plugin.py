"""The plugin of pytest: files `*.test.toml` are tests, each case of one a test of its own.

pytest loads it in every session, so it imports nothing of celc before there is such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from celc.interfaces.cli.testing.files import Case
    from celc.interfaces.cli.testing.running import Runner

_SUFFIX = ".test.toml"


class CaseFailed(Exception):
    """A case that does not pass, as people read it."""


class QueryFile(pytest.File):
    """A test file."""

    runner: Runner
    warned: list[str]
    repairs: str | None = None
    """The clauses to mend, which are told with the first case that fails."""

    def collect(self) -> Iterator[QueryCase]:
        from celc.diagnostics.errors import CelError
        from celc.interfaces.cli.problems import CommandProblem
        from celc.interfaces.cli.testing.files import read_tests
        from celc.interfaces.cli.testing.running import Runner

        self.warned = []
        try:
            self.runner = Runner(read_tests(self.path))
        except (CelError, CommandProblem) as problem:
            raise self.CollectError(str(problem)) from None
        for case in self.runner.tests.cases:
            yield QueryCase.from_parent(self, name=case.name, case=case)


class QueryCase(pytest.Item):
    """A case of a test file."""

    def __init__(self, *, case: Case, **others: Any) -> None:
        super().__init__(**others)
        self.case = case

    def runtest(self) -> None:
        from celc.diagnostics.errors import CelError
        from celc.interfaces.cli.testing.reports import told_of_case, told_repairs

        file = self.parent
        assert isinstance(file, QueryFile)
        try:
            outcome = file.runner.run(self.case)
            for told in file.runner.warnings():
                if told not in file.warned:
                    file.warned.append(told)
                    self.warn(pytest.PytestWarning(told))
            if outcome.passed:
                return
            told = told_of_case(outcome, file.runner)
            if file.repairs is None:
                file.repairs = told_repairs(file.runner, [*file.runner.all()])
                told = "\n".join(filter(None, [told, file.repairs]))
        except CelError as problem:
            raise CaseFailed(str(problem)) from None
        raise CaseFailed(told)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        file = self.parent
        assert isinstance(file, QueryFile)
        line, _ = file.runner.tests.source.line_and_column(self.case.span.start)
        return self.path, line - 1, self.name


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> QueryFile | None:
    """A test file of queries is collected by its name."""
    if file_path.name.endswith(_SUFFIX):
        return QueryFile.from_parent(parent, path=file_path)
    return None
