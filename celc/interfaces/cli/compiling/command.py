"""The command: which form the queries get, and what does not go together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from celc.diagnostics.files import query_files
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli import row_patterns
from celc.interfaces.cli.output import check_output, tell, written
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.queries import (
    compiled,
    is_generated,
    module_path,
    shown_command,
    told,
)


def compile_files(arguments: argparse.Namespace) -> int:
    """Write what `celc compile` is asked for; returns the exit code."""
    from celc.interfaces.cli.near.misses import check_near

    paths, wrong = query_files(arguments.source)
    if wrong:
        raise CommandProblem("; ".join(wrong))
    try:
        of_rows = language_of(*paths) is ROW_PATTERNS
    except ValueError as problem:
        raise CommandProblem(str(problem)) from None
    of_matches = {"--match-id": arguments.match_id, "--to": arguments.to != "module"}
    check_near(arguments, {**of_matches, "MATCH_RECOGNIZE": of_rows, "--prove": arguments.prove})
    if arguments.to == row_patterns.FUNCTIONS:
        if not of_rows:
            raise CommandProblem(
                f"{arguments.to} is for a .sql file with MATCH_RECOGNIZE; a query of CEL becomes a "
                "table function by register(spark) of its module: leave out --to"
            )
        row_patterns.write_functions(arguments, paths[0])
        return FINE
    if arguments.prove and arguments.to != "module":
        raise CommandProblem("--prove is for a module: leave out --to")
    if arguments.to != "module":
        if of_rows:
            raise CommandProblem(
                f"{paths[0].name} is SQL already: leave out --to, or write --to "
                f"{row_patterns.FUNCTIONS}"
            )
        if arguments.match_id:
            raise CommandProblem("a statement computes no match_id: leave out --match-id")
        from celc.interfaces.cli import sql

        sql.write_statements(arguments, paths)
        return FINE
    if arguments.table is not None:
        raise CommandProblem("--table is for statements: add --to spark-sql")
    _check_many(arguments, of_rows=of_rows)
    if len(paths) > 1 and arguments.output is None:
        raise CommandProblem(
            f"{len(paths)} files become one module: name it with -o, as in -o rules_udf.py"
        )
    return _write_module(arguments, paths, of_rows=of_rows)


def _write_module(arguments: argparse.Namespace, paths: Sequence[Path], *, of_rows: bool) -> int:
    """Write the module of query files; returns the exit code."""
    from celc.interfaces.cli.declaring.schemas import schema_of
    from celc.interfaces.cli.near.misses import near_text

    output = arguments.output or module_path(paths)
    check_output(output, force=arguments.force, inputs=paths, whose="celc", ours=is_generated)
    command = shown_command(arguments, paths, output)
    compilation = None if of_rows else compiled(arguments, paths)
    if compilation is None:
        text = row_patterns.compiled(arguments, paths[0]).module_text(command)
    elif arguments.near:
        text = near_text(arguments, compilation, command, schema_of(arguments))
    else:
        text = compilation.module_text(command)
    alone = text
    if arguments.standalone:
        from celc.driver.standalone import standalone

        text = standalone(text)
    if arguments.prove:
        from celc.interfaces.cli.proving.command import prove_module

        code = prove_module(arguments, compilation, alone, text.encode(), output)
        if code != FINE:
            return code
    with written(output) as out:
        out.write(text.encode())
    problems = () if compilation is None else compilation.problems
    if not problems:
        return FINE
    code = told(problems)
    tell(f"{output} has the queries of the other {len(paths) - len(problems)} files")
    return code


def _check_many(arguments: argparse.Namespace, *, of_rows: bool) -> None:
    """Raises CommandProblem where the options for many files do not go with the others."""
    asked = [
        name
        for name, is_asked in (
            ("--by-shape", arguments.by_shape),
            ("--keep-going", arguments.keep_going),
        )
        if is_asked
    ]
    for name in asked:
        if of_rows or arguments.near or arguments.prove:
            others = "--near" if arguments.near else "--prove"
            other = "a .sql file with MATCH_RECOGNIZE" if of_rows else others
            raise CommandProblem(
                f"{name} is for files of CEL, and not for {other}: leave out {name}"
            )
    if arguments.processes > 1 and not arguments.by_shape:
        raise CommandProblem(
            "--processes shares files of rules, which --by-shape asks for; machine code is made "
            "by several processes with celc warm"
        )
