"""Thousands of rules in one module: each file is checked, and each shape of them is written once.

All passes run for each file, so its messages are those of the file alone, and several processes can
share the files. Of the results one row stays. Rules of one shape become rows of one query FOR EACH
(`celc.driver.shapes`); the module has the code of their query, and a table of their constants. A
shape that FOR EACH cannot run as its rules alone is left, and its rules are compiled one by one.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from celc_runtime.plan.errors import OptionClash
from celc_runtime.plan.frozen import frozen

from celc.codegen.rules import Rules
from celc.diagnostics.deadline import Deadline, look
from celc.diagnostics.errors import CelError, Diagnostic, raise_all
from celc.diagnostics.source import Source, Span
from celc.driver.pipeline import Compilation, CompiledFile, compiled_file
from celc.driver.shapes import Row, Shape, shape_of
from celc.options import Options
from celc.parse import syntax
from celc.parse.parser import KnownStreams, parse_with_tokens
from celc.resolve.files import DeclaredInFiles
from celc.resolve.types.tables import KnownTable

_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "import sys; sys.path[:] = {path!r}; from celc.driver.by_shape import main; main()"
)


class ProcessFailed(Exception):
    """A process that checks files has ended without an answer; with the reason in words."""


@frozen
class _Named:
    """A query of a checked file: its name and place."""

    name: str
    span: Span


@frozen
class _Checked:
    """A file without errors: its declarations and queries, its warnings, and its shape."""

    tree: syntax.File  # without queries
    queries: tuple[_Named, ...]
    warnings: tuple[Diagnostic, ...]
    shape: tuple[Shape, Row] | None


_Result: TypeAlias = _Checked | CelError


def compile_by_shape(
    sources: Sequence[Source],
    options: Options,
    *,
    schema: Any = None,
    processes: int = 1,
    keep_going: bool = False,
) -> Compilation:
    """As `compile_files`; files of one rule whose shape can be found become rows of its query.

    processes: how many check files at a time; the module is the same for any number. Raises
    CelError likewise, OptionClash for match_id, which would be another than that of the rule alone,
    and ProcessFailed.
    """
    if options.match_id:
        raise OptionClash("match_id", "rules by shape have no match_id: leave out --by-shape")
    deadline = Deadline(sources[0], options.max_compile_seconds)
    table = None if schema is None else KnownTable(schema, options.type_column)
    declared = DeclaredInFiles()
    problems: list[CelError] = []
    kept: list[tuple[Source, _Checked]] = []
    with deadline.running():
        checked = _checked_by_processes(sources, options, table, processes)
        for source, found in zip(sources, checked, strict=True):
            try:
                if isinstance(found, CelError):
                    raise found
                declared.add(source, found.tree, found.queries)
                kept.append((source, found))
            except CelError as problem:
                problems.append(problem)
        if not (keep_going and kept):
            raise_all(problems)
        files, rules, alone = _of_shapes(kept, options, table, deadline)
        for source in alone:
            deadline.turn_to(source)
            files.append(compiled_file(source, options, table, deadline))
    names = {id(source) for source in alone}
    told = [(source, found.warnings) for source, found in kept if id(source) not in names]
    told = [(source, warnings) for source, warnings in told if warnings]
    return Compilation(tuple(files), options, deadline, tuple(problems), rules, tuple(told))


def _of_shapes(
    kept: Sequence[tuple[Source, _Checked]],
    options: Options,
    table: KnownTable | None,
    deadline: Deadline,
) -> tuple[list[CompiledFile], dict[str, Rules], list[Source]]:
    """(The compiled files of shapes; the tables of their rules; the files that stay alone)."""
    members: dict[str, list[tuple[Source, _Checked, Shape, Row]]] = {}
    alone = [source for source, found in kept if found.shape is None]
    for source, found in kept:
        if found.shape is not None:
            members.setdefault(found.shape[0].name, []).append((source, found, *found.shape))
    files, rules = [], {}
    for name, of_shape in members.items():
        _, first, shape, _ = of_shape[0]
        source = Source(f"{name}.cel", shape.text)
        deadline.turn_to(source)
        file = _as_its_rules(source, first.warnings, options, table, deadline)
        if file is None:
            alone += [source for source, *_ in of_shape]
            continue
        # The places of warnings are those of the rule's own file, which tells them.
        files.append(replace(file, warnings=()))
        rows = tuple((row.rule, *row.values) for *_, row in of_shape)
        rules[name] = Rules(shape.columns, rows)
    places = {id(source): place for place, (source, _) in enumerate(kept)}
    return files, rules, sorted(alone, key=lambda source: places[id(source)])


def _as_its_rules(
    source: Source,
    warnings: Sequence[Diagnostic],
    options: Options,
    table: KnownTable | None,
    deadline: Deadline,
) -> CompiledFile | None:
    """The compiled shape; None where FOR EACH refuses it, or runs it in a way that is warned of and
    its rules are not."""
    try:
        file = compiled_file(source, options, table, deadline)
    except CelError:
        if deadline.is_over():
            raise
        return None
    said = {one.code for one in warnings}
    return file if all(one.code in said for one in file.warnings) else None


# --- checking -------------------------------------------------------------------------------------


def _checked_by_processes(
    sources: Sequence[Source], options: Options, table: KnownTable | None, processes: int
) -> list[_Result]:
    """The result of each file, found by this number of processes, of which the caller is one."""
    count = min(processes, len(sources))
    size = -(-len(sources) // count)
    parts = [sources[at : at + size] for at in range(0, len(sources), size)]
    others = [_Process(part, options, table) for part in parts[1:]]
    try:
        found = _checked(parts[0], options, table)
        for other in others:
            found += other.answer()
        return found
    finally:
        for other in others:
            other.end()


def _checked(
    sources: Sequence[Source], options: Options, table: KnownTable | None
) -> list[_Result]:
    return [*_results(sources, options, table)]


def _results(
    sources: Sequence[Source], options: Options, table: KnownTable | None
) -> Iterator[_Result]:
    deadline = Deadline(sources[0], options.max_compile_seconds)
    # Most files declare the same in the same words, at one place.
    known = KnownStreams()
    with deadline.running():
        for source in sources:
            deadline.turn_to(source)
            try:
                look(doing="reading the text")
                tree, tokens = parse_with_tokens(source, known)
                file = compiled_file(source, options, table, deadline, tree=tree)
            except CelError as problem:
                yield problem
                continue
            queries = tuple(_Named(one.query.name, one.query.span) for one in file.queries)
            shape = shape_of(source, tree, tokens, queries[0].name)
            yield _Checked(replace(tree, queries=()), queries, file.warnings, shape)


class _Process:
    """A process that checks files."""

    def __init__(
        self, sources: Sequence[Source], options: Options, table: KnownTable | None
    ) -> None:
        command = [sys.executable, "-c", _PROGRAM.format(path=sys.path)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        try:
            pickle.dump((sources, options, table), self._process.stdin)
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, and there is no answer

    def answer(self) -> list[_Result]:
        """What it has found out, when it is ready. Raises ProcessFailed."""
        assert self._process.stdout is not None
        found = self._process.stdout.read()
        code = self._process.wait()
        if code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ProcessFailed(f"a process that checked files ended with {how}")
        results: list[_Result] = pickle.loads(found)
        return results

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Check the files that standard input has, and write the answer to standard output."""
    sources, options, table = pickle.load(sys.stdin.buffer)
    pickle.dump(_checked(sources, options, table), sys.stdout.buffer)
