"""Several files that become one module.

Each file is compiled alone, so its messages are those of the file alone. Declarations that are
equal, places aside, are one; the queries of all files are those of the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from celc.diagnostics.deadline import look
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics, render_all
from celc.diagnostics.messages import files as messages
from celc.diagnostics.source import Source, Span, visible
from celc.options import Options
from celc.parse import syntax
from celc.parse.parser import parse
from celc.pipeline import Compilation, Stages, compile_source, written


class FilesError(CelError):
    """The errors of several files: `problems` has one error for each; `source` and `diagnostics`
    are those of the first."""

    def __init__(self, problems: Sequence[CelError]) -> None:
        super().__init__(problems[0].source, problems[0].diagnostics)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.problems))

    def __reduce__(self) -> tuple[type[FilesError], tuple[Sequence[CelError]]]:  # type: ignore[override]
        return FilesError, (self.problems,)


@dataclass(frozen=True, slots=True)
class CompiledFiles:
    """Compiled files, one or several, whose queries are in one module."""

    files: tuple[Compilation, ...]

    @property
    def queries(self) -> tuple[Stages, ...]:
        """The queries of all files."""
        return tuple(stages for file in self.files for stages in file.queries)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of all files, file by file."""
        return tuple(warning for file in self.files for warning in file.warnings)

    def rendered_warnings(self, query: str | None = None) -> str:
        """The warnings as shown to a person; empty where there are none. `query`: without those of
        the queries that it does not read."""
        parts = []
        for file in self.files:
            others = [one.query.span for one in file.queries if not self._matters(one, query)]
            warnings = [
                warning
                for warning in file.warnings
                if not any(one.start <= warning.span.start < one.end for one in others)
            ]
            if warnings:
                parts.append(render_all(file.source, warnings))
        return "\n\n".join(parts)

    def _matters(self, stages: Stages, name: str | None) -> bool:
        """Whether a query is the one of a name, or one that it reads; all are, where there is no
        such query."""
        by_name = {one.query.name: one.query for one in self.queries}
        if name not in by_name:
            return True
        needed = [name]
        for one in needed:
            needed += [other for other in by_name[one].reads if other not in needed]
        return stages.query.name in needed

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header. Raises CelError where the time
        for the compilation ends before the module is written."""
        from celc.codegen.layout import formatted

        parts = self.module_parts(command)
        with self.files[0].deadline.running():
            look(doing="putting the module into lines")
            return formatted(parts)

    def module_parts(self, command: str) -> tuple[str, ...]:
        """The same in parts, as a `Matcher` loads it."""
        if len(self.files) == 1:
            return self.files[0].module_parts(command)
        first = self.files[0]
        texts = [
            f"-- {visible(file.source.name)}\n{file.source.text.rstrip()}\n" for file in self.files
        ]
        with first.deadline.running():
            return written(self.queries, "\n".join(texts), first.options, command)


def compile_files(sources: Sequence[Source], options: Options) -> CompiledFiles:
    """All passes for the queries of all files.

    Raises CelError with the errors of all files; `FilesError` where several have some.
    """
    compiled: list[Compilation] = []
    problems: list[CelError] = []
    known = _Known()
    for source in sources:
        try:
            compilation = compile_source(source, options)
        except CelError as problem:
            problems.append(problem)
            continue
        compiled.append(compilation)
        if len(sources) > 1:
            found = Diagnostics(source)
            known.check(compilation, found)
            if found.has_errors:
                problems.append(CelError(source, found.in_order()))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise FilesError(problems)
    return CompiledFiles(tuple(compiled))


class _Known:
    """What the files so far have declared, and where."""

    def __init__(self) -> None:
        self._queries: dict[str, str] = {}
        self._declared: dict[str, tuple[object, str]] = {}

    def check(self, compilation: Compilation, found: Diagnostics) -> None:
        """Find the errors of a file that the files before it make."""
        source = compilation.source
        file = parse(source)
        for stages in compilation.queries:
            query = stages.query
            first = self._queries.setdefault(query.name.casefold(), _place(source, query.span))
            if first != _place(source, query.span):
                found.add(messages.query_of_two_files(query.name, first, query.span))
        for stream in file.streams:
            self._declare("stream", stream.name, stream, source, found)
        for parameters in file.parameters:
            self._declare("parameter set", parameters.name, parameters, source, found)
        for aggregate in file.aggregates:
            self._declare("aggregate", aggregate.name, aggregate, source, found)

    def _declare(
        self, kind: str, name: syntax.Name, declared: object, source: Source, found: Diagnostics
    ) -> None:
        place = _place(source, name.span)
        first, where = self._declared.setdefault(f"{kind} {name.text}", (declared, place))
        if first != declared:
            found.add(messages.declared_otherwise(kind, name.text, where, name.span))


def _place(source: Source, span: Span) -> str:
    line, _ = source.line_and_column(span.start)
    return f"{source.name}:{line}"
