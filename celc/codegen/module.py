"""Queries → the text of a Python module.

All decisions are made here and in the modules beside this one, and reach the Jinja templates as
dataclasses; the templates hold the layout. Black formats the result. So its bytes depend only on
the query and on the versions of Jinja and black.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from celc_runtime.module_format import FORMAT
from celc_runtime.plan.errors import OptionClash
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import NearPlan

from celc.codegen.query import Lowered, ModuleOptions, lower
from celc.codegen.rules import Rules, rules_text
from celc.codegen.text.emit import emit
from celc.codegen.text.escape import comment_text, literal_lines, string_literal
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.diagnostics.deadline import look, turn_to
from celc.diagnostics.source import Source
from celc.plan.program import Program
from celc.version import VERSION


@frozen
class ModuleStart(TemplateView):
    """The beginning of a module: the text that it was made from, and its imports. `command` and
    `language` stand in the docstring. `query_lines` are literals of the lines of the text."""

    template: ClassVar[str] = "module_start"

    version: str
    version_comment: str
    format: int
    command: str
    query_lines: tuple[str, ...]
    imports: tuple[str, ...]
    language: str

    @classmethod
    def of(cls, text: str, command: str, imports: Imports, language: str = "CEL") -> "ModuleStart":
        """The beginning of the module of a text."""
        return cls(
            string_literal(VERSION),
            comment_text(VERSION),
            FORMAT,
            comment_text(command).replace("\\", "\\\\").replace('"', "'"),
            tuple(literal_lines(text)),
            imports.lines(),
            language,
        )


@frozen
class ModuleEnd(TemplateView):
    """The end of a module: its queries by name. `update` is the update of its only query; it is
    empty where there are several."""

    template: ClassVar[str] = "module_end"

    queries: tuple[str, ...]
    update: str
    rules: bool = False  # RULES has tables, whose rows are queries as well


@frozen
class Module:
    """A module in its last representation: its queries by number from 1, and what they import."""

    queries: tuple[Lowered, ...]
    options: ModuleOptions
    imports: Imports


def lowered(programs: Sequence[tuple[Source, Program]], options: ModuleOptions) -> Module:
    """The module of queries, each with the file that it is in.

    Raises OptionClash for a type column that a query cannot have, and where `options` ask for
    match_id and no query has it.
    """
    imports = Imports()
    numbers = {program.query.name: number for number, (_, program) in enumerate(programs, start=1)}
    queries = []
    for number, (source, program) in enumerate(programs, start=1):
        turn_to(source)
        queries.append(lower(number, program, options, imports, numbers))
    if options.match_id and not any(one.plan.is_of_matches for one in queries):
        raise OptionClash(
            "match_id", "no query of this text has rows that are matches: leave out match_id"
        )
    imports.use("module_names")
    return Module(tuple(queries), options, imports)


@frozen
class NearEnd(TemplateView):
    """The end of a module with bent queries: `plan` says what they are for."""

    template: ClassVar[str] = "near_end"

    imports: tuple[str, ...]
    plan: str


def near_part(plan: NearPlan) -> str:
    """The part of a module of near misses that follows its queries."""
    imports = Imports()
    imports.use("NearQuery")
    text = emit(plan, imports)
    return NearEnd(imports.lines(), text).text()


def module_parts(
    module: Module, command: str, rules: Mapping[str, Rules] | None = None
) -> tuple[str, ...]:
    """The parts of a module's text; the header names `command`. To load the module they are joined.
    For people `layout.formatted` formats them. rules: those that are rows of a query, by its name.
    """
    end = ModuleEnd(
        tuple(
            f"{string_literal(query.plan.name)}: query_{number}"
            for number, query in enumerate(module.queries, start=1)
        ),
        "update_1" if len(module.queries) == 1 and not rules else "",
        bool(rules),
    )
    if rules:
        module.imports.use("with_rules")
    text = module.options.declared + module.options.text
    start = ModuleStart.of(text, command, module.imports)
    texts = [start.text()]
    for query in module.queries:
        look()
        texts.append("".join(part.text() for part in query.parts) + "\n")
    if rules:
        texts.append(rules_text(rules))
    texts.append(end.text())
    return tuple(texts)
