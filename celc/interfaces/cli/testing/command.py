"""`celc test`: run the cases of test files, and say what is missing and what is too much."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError
from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import visible
from celc.interfaces.cli.output import check_output, say, tell
from celc.interfaces.cli.problems import FILE_WRONG, FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.testing.files import QueryTests, files_of_tests, read_tests
from celc.interfaces.cli.testing.junit import Result, Suite, write_junit
from celc.interfaces.cli.testing.recording import record
from celc.interfaces.cli.testing.reports import told_of_case, told_repairs
from celc.interfaces.cli.testing.running import Outcome, Run, Runner, on_this_machine


@frozen(eq=False)
class Tested:
    """A test file and its outcomes; `problem`: why it could not be run to its end."""

    name: str
    runner: Runner | None
    outcomes: tuple[Outcome, ...]
    problem: str | None = None

    @property
    def failed(self) -> int:
        return sum(not one.passed for one in self.outcomes)


def run(arguments: argparse.Namespace) -> int:
    """Run the cases of test files: 0 where all pass, 1 where one fails, 2 where a file is wrong."""
    if arguments.write and (arguments.spark or arguments.mutate):
        other = "--spark" if arguments.spark else "--mutate"
        raise CommandProblem(f"--write records answers, and {other} tests them: leave one out")
    files = list(files_of_tests(arguments.tests or [Path()]))
    if not files:
        raise CommandProblem("there is no test file to run")
    if arguments.junit is not None:
        check_output(arguments.junit, force=True, inputs=files)
    with ExitStack() as opened:
        find: Run = on_this_machine
        if arguments.spark:
            from celc.interfaces.cli.testing.on_spark import local_spark

            find = opened.enter_context(local_spark())
        tested = [_tested(path, find) for path in files]
    suites = [_told(one, write=arguments.write) for one in tested]
    if arguments.junit is not None:
        write_junit(arguments.junit, suites)
    if arguments.mutate:
        from celc.interfaces.cli.testing.mutation import tell_unnoticed

        passing = [one for one in tested if not one.failed]
        tell_unnoticed([one.runner for one in passing if one.runner is not None])
        if len(passing) < len(tested):
            tell("celc: --mutate left out the files with cases that fail")
    say(_summary(tested))
    if any(one.problem is not None for one in tested):
        return FILE_WRONG
    return QUERY_WRONG if any(one.failed for one in tested) and not arguments.write else FINE


def _tested(path: Path, find: Run) -> Tested:
    name = path.as_posix()
    outcomes: list[Outcome] = []
    runner: Runner | None = None
    try:
        tests = read_tests(path, name)
        runner = Runner(tests, run=find)
        for case in tests.cases:
            outcomes.append(runner.run(case))
    except CelError as problem:
        return Tested(name, None, tuple(outcomes), str(problem))
    except CommandProblem as problem:
        return Tested(name, None, tuple(outcomes), f"celc: {problem}")
    for warned in runner.warnings():
        tell(warned)
    return Tested(name, runner, tuple(outcomes))


def _told(tested: Tested, *, write: bool) -> Suite:
    """Say what is wrong in a file, or write what its cases answer."""
    if tested.runner is None:
        assert tested.problem is not None
        tell(tested.problem)
        return Suite(tested.name, (), tested.problem)
    runner = tested.runner
    if write:
        count = record(runner.tests, tested.outcomes)
        if count:
            say(f"{visible(tested.name)}: {counted(count, 'answer')} written\n")
        return Suite(tested.name, tuple(_results(runner.tests, tested.outcomes, {})))
    failures = {
        one.case.name: told_of_case(one, runner) for one in tested.outcomes if not one.passed
    }
    for one in tested.outcomes:
        if not one.passed:
            line, _ = runner.tests.source.line_and_column(one.case.span.start)
            head = f"{visible(tested.name)}:{line}: FAILED: {visible(one.case.name)}"
            say(f"{head}\n{_indented(failures[one.case.name])}\n")
    if failures:
        repairs = told_repairs(runner, tested.outcomes)
        if repairs:
            say(f"{visible(tested.name)}: {repairs}\n")
    return Suite(tested.name, tuple(_results(runner.tests, tested.outcomes, failures)))


def _results(
    tests: QueryTests, outcomes: Sequence[Outcome], failures: dict[str, str]
) -> Iterator[Result]:
    for one in outcomes:
        line, _ = tests.source.line_and_column(one.case.span.start)
        yield Result(one.case.name, line, one.seconds, failures.get(one.case.name))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))


def _summary(tested: Sequence[Tested]) -> str:
    passed = sum(one.passed for file in tested for one in file.outcomes)
    failed = sum(one.failed for one in tested)
    parts = [f"{counted(passed, 'case')} passed"]
    parts += [f"{failed:,} failed"] if failed else []
    wrong = sum(one.problem is not None for one in tested)
    parts += [f"{counted(wrong, 'file')} could not be run"] if wrong else []
    return ", ".join(parts) + "\n"
