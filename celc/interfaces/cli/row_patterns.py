"""Files with MATCH_RECOGNIZE on the command line: how they are compiled and explained."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celc.diagnostics.errors import render_all
from celc.diagnostics.source import visible
from celc.editor.languages import ROW_PATTERNS
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.output import check_output, say, tell, written
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import (
    dump_routes,
    is_generated,
    module_path,
    options_of,
    read_source,
    shown_command,
)
from celc.options import Options
from celc.version import VERSION

if TYPE_CHECKING:
    from celc.row_pattern.compiler import RowCompilation

FUNCTIONS = "spark-functions"
"""The value of `--to` for a module of table functions, and the statement over them."""


def _options(arguments: argparse.Namespace) -> Options:
    """The options of a compilation. Raises CommandProblem for those that are of CEL alone."""
    options = options_of(arguments)
    for name in ROW_PATTERNS.foreign(options):
        if name == "match_id":
            raise CommandProblem(
                "a module of MATCH_RECOGNIZE has ids where they are asked for: leave out "
                "--match-id, and call with_options(match_id=True) of the query"
            )
        option = "--" + name.replace("_", "-")
        raise CommandProblem(f"{option} is for CEL; MATCH_RECOGNIZE has no such thing")
    return options


def compiled(arguments: argparse.Namespace, path: Path, schema: Any = None) -> RowCompilation:
    """The compiled file; its warnings go to standard error.

    schema: the columns of the table where the file has no CREATE TABLE; None: those of the file
    that `--schema` names. Raises CelError, and CommandProblem for options that are of CEL alone.
    """
    options = _options(arguments)
    source = read_source(path)
    if ROW_PATTERNS.is_statement(source):
        raise CommandProblem(
            f"{path.name} has a whole statement, which a host runs: celc run {path.name} "
            "--table NAME=FILE, or celc.sql(host, text) in Python; celc compile --to "
            "spark-functions writes it over table functions of Spark"
        )
    schema = schema_of(arguments) if schema is None else schema
    compilation = ROW_PATTERNS.compile([source], options, schema)
    if compilation.warnings:
        tell(render_all(source, compilation.warnings))
    return compilation


def write_functions(arguments: argparse.Namespace, path: Path) -> None:
    """Write the module with the functions of a file's clauses, and print the statement over them.

    Raises CelError, and CommandProblem for what the command line may not ask.
    """
    from celc.codegen.text.layout import formatted
    from celc.statements.functions import functions_of

    if arguments.table is not None:
        raise CommandProblem("a statement names its tables itself: leave out --table")
    options = _options(arguments)
    output = arguments.output or module_path([path])
    check_output(output, force=arguments.force, inputs=[path], whose="celc", ours=is_generated)
    source = read_source(path)
    schema = schema_of(arguments)
    made = functions_of(
        source,
        f"{shown_command(arguments, [path], output)} --to {FUNCTIONS}",
        options.max_work,
        None if schema is None else lambda: schema,
    )
    if made.warnings:
        tell(render_all(source, made.warnings))
    module = formatted(made.module)
    if arguments.standalone:
        from celc.driver.standalone import standalone

        module = standalone(module)
    with written(output) as out:
        out.write(module.encode())
    say(
        f"-- {visible(path.name)} over table functions of Spark, by celc {VERSION}. "
        "In each session first:\n"
        f"--   {visible(_registering(output.stem))}\n"
        f"{made.statement.strip()};\n"
    )


def _registering(module: str) -> str:
    """What registers the functions of a module, whose name need not be one of Python's."""
    if module.isidentifier():
        return f"import {module}; {module}.register_all(spark)"
    return f"import importlib; importlib.import_module({module!r}).register_all(spark)"


def explained(arguments: argparse.Namespace) -> str:
    """What `celc explain` shows of a file."""
    from celc.row_pattern import explain

    if arguments.format != "text":
        raise CommandProblem("the automaton of MATCH_RECOGNIZE is shown as text: --format text")
    if arguments.query not in (None, arguments.source.stem):
        raise CommandProblem(f"the only query of the file is '{arguments.source.stem}'")
    compilation = compiled(arguments, arguments.source)
    match arguments.stage:
        case "code":
            return compilation.module_text(shown_command(arguments, [arguments.source]))
        case "formula":
            lines = explain.verdict_of(compilation).lines()
            return "".join(
                f"{visible(line)}\n" for line in (f"query {compilation.query.name}", *lines)
            )
        case "cea":
            return explain.automaton_text(compilation)
        case "routes":
            return dump_routes(compilation.module_parts("celc explain"), [arguments.source.stem])
        case stage:
            raise CommandProblem(
                f"MATCH_RECOGNIZE has the stages formula, cea, routes and code, and no {stage}"
            )
