"""`celc test --mutate`: the changes of a query that no case notices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError
from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import Source, visible
from celc.editor.languages import CEL
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.testing.reports import told_change
from celc.interfaces.cli.testing.running import Runner
from celc.mutate.mutants import Mutant, mutants_of
from celc.parse.parser import parse


@frozen(eq=False)
class Tried:
    """The changes of a query file: how many make a query, and those that no case notices."""

    source: Source
    made: int
    unnoticed: tuple[Mutant, ...]


def tell_unnoticed(runners: Sequence[Runner]) -> None:
    """Say which changes of the query files no case notices; of several test files of one query file
    any may notice them."""
    of_files: dict[Path, list[Runner]] = {}
    for runner in runners:
        of_files.setdefault(runner.tests.query_file.resolve(), []).append(runner)
    for together in of_files.values():
        if together[0].language is CEL:
            say(_told(tried(together)))
        else:
            name = visible(together[0].source.name)
            tell(f"celc: --mutate changes queries in CEL, and {name} has MATCH_RECOGNIZE")


def tried(runners: Sequence[Runner]) -> Tried:
    """Run the cases of test files of one query file with each change of it."""
    source = runners[0].source
    made, unnoticed = 0, []
    for query in parse(source).queries:
        for mutant in mutants_of(query, source):
            noticed = _noticed(mutant, runners)
            made += noticed is not None
            if noticed is False:
                unnoticed.append(mutant)
    return Tried(source, made, tuple(unnoticed))


def _noticed(mutant: Mutant, runners: Sequence[Runner]) -> bool | None:
    """Whether some case does not pass with a change; None: the change makes no query."""
    for runner in runners:
        changed = Runner(runner.tests, mutant.of(runner.source))
        for case in runner.tests.cases:
            try:
                changed.compiled(case)
            except CelError:
                return None
            try:
                if not changed.run(case).passed:
                    return True
            except (CelError, EventError):
                return True  # the answer has other columns, or the events do not fit any more
    return False


def _told(tried: Tried) -> str:
    name = visible(tried.source.name)
    count = len(tried.unnoticed)
    if not count:
        return f"{name}: the cases notice all of {counted(tried.made, 'change')}\n"
    lines = [f"{name}: no case notices {count:,} of {counted(tried.made, 'change')}:"]
    lines += [f"  {told_change(one, tried.source)}" for one in tried.unnoticed]
    return "\n".join(lines) + "\n"
