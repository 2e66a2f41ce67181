"""The command `celc`: its commands, and the exit codes.

The compiler and the runtime are imported by the commands that need them.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

from celc_runtime.module_format import FormatError
from celc_runtime.plan.errors import OptionClash

from celc.diagnostics.errors import CelError
from celc.diagnostics.files import SUFFIX
from celc.diagnostics.own_runtime import AnotherRuntime
from celc.diagnostics.source import visible
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli import completion, row_patterns
from celc.interfaces.cli.arguments import parser
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.output import check_output, say, tell, written
from celc.interfaces.cli.problems import (
    FILE_WRONG,
    FINE,
    QUERY_WRONG,
    CommandProblem,
    ReadEnough,
)
from celc.interfaces.cli.queries import (
    chosen_queries,
    compiled,
    dump_routes,
    options_of,
    read_source,
    shown_command,
    told,
)
from celc.interfaces.cli.settings import project
from celc.interfaces.cli.settings.files import SettingsError
from celc.interfaces.cli.signals import Stopped, stopped_by_signals

if TYPE_CHECKING:

    from celc.driver.pipeline import Stages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `celc` with arguments (default: those of the process); returns the exit code.

    A wrong command line, `--help` and `--version` raise SystemExit, as argparse does.
    """
    try:
        with stopped_by_signals():
            return _main(arguments)
    except Stopped as stopped:
        tell(f"celc: {'interrupted' if stopped.number == signal.SIGINT else 'terminated'}")
        return 128 + stopped.number


def _main(arguments: Sequence[str] | None) -> int:
    try:
        parsed = _parsed(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _shown_once()
            return _COMMANDS[parsed.command](parsed)
    except SettingsError as problem:
        tell(str(problem))
        return FILE_WRONG
    except CelError as problem:
        return told(problem.problems)
    except ReadEnough:
        return FINE
    except (CommandProblem, AnotherRuntime, FormatError) as problem:
        tell(f"celc: {visible(str(problem))}")
        return FILE_WRONG
    except OptionClash as problem:
        tell(f"celc: --{problem.option.replace('_', '-')}: {visible(str(problem))}")
        return FILE_WRONG


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, with the settings of the project before those that are given. Messages of
    argparse go where all output goes."""
    printed, told = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(told):
            known = parser()
            given = list(sys.argv[1:] if arguments is None else arguments)
            parsed, more = known.parse_known_args(given)
            with_settings = project.with_settings(known, parsed, given)
            if with_settings != given:
                parsed, more = known.parse_known_args(with_settings)
            parsed.given = with_settings
            options = [name for name in more if name.startswith("-") and name != "-"]
            if parsed.command in ("explain", "run") and not options:
                # argparse stops reading names of events where an option stands before them.
                parsed.events += more
            elif "--no-positions" in more:
                known.error("a statement has no positions unless --positions asks for them")
            elif more:
                known.error(f"unrecognized arguments: {' '.join(more)}")
            return parsed
    except SystemExit:
        if told.getvalue():
            tell(told.getvalue().rstrip("\n"))
        if printed.getvalue():
            say(printed.getvalue())
        raise


def _shown_once() -> Callable[..., None]:
    """What shows warnings, each text once: a query that others read is run for each of them."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = visible(str(message))
        if text not in shown:
            shown.add(text)
            tell(f"celc: warning: {text}")

    return show


# --- commands -------------------------------------------------------------------------------------


def _compile(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.compiling.command import compile_files

    return compile_files(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli import checking

    options, schema = options_of(arguments), schema_of(arguments)
    if arguments.verbose and arguments.format != "text":
        raise CommandProblem(f"--verbose is for people: leave out --format {arguments.format}")
    return checking.check_paths(
        arguments.source, options, arguments.format, schema, verbose=arguments.verbose
    )


def _fmt(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli import formatting

    return formatting.format_paths(
        arguments.source, arguments.dialect, check=arguments.check, diff=arguments.diff
    )


def _lsp(arguments: argparse.Namespace) -> int:
    try:
        from celc.editor.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise CommandProblem(
            "the language server needs the package pygls: pip install 'celc[editor]'"
        ) from None
    from celc.interfaces.cli.serving.trials import TrialsOf

    serve(partial(project.choices_for, arguments.given), TrialsOf(arguments.given))
    return FINE


def _serve(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.serving.serve import serve

    serve(arguments)
    return FINE


def _completion(arguments: argparse.Namespace) -> int:
    say(completion.script(parser(), arguments.shell))
    return FINE


def _explain(arguments: argparse.Namespace) -> int:
    if arguments.format == "html" and arguments.stage in (None, "det"):
        from celc.interfaces.cli import automata

        return automata.explain(arguments)
    if arguments.events:
        raise CommandProblem(
            "events are for the page of the automaton: add --format html, or leave out "
            f"{arguments.events[0]}"
        )
    if arguments.format == "html":
        raise CommandProblem(f"--format html draws the stage det, and not {arguments.stage}")
    verdicts = arguments.stage is None and arguments.format == "text"
    arguments.stage = arguments.stage or "formula"
    if arguments.format != "text" and arguments.stage not in ("chain", "cea", "det"):
        raise CommandProblem("only the stages chain, cea and det can be drawn")
    check_output(arguments.output, force=arguments.force, inputs=[arguments.source])
    if language_of(arguments.source) is ROW_PATTERNS:
        text = row_patterns.explained(arguments)
    else:
        text = _explained(arguments, verdicts=verdicts)
    if arguments.output is None:
        say(text)
    else:
        with written(arguments.output) as out:
            out.write(text.encode())
    return FINE


def _explained(arguments: argparse.Namespace, *, verdicts: bool) -> str:
    from celc.interfaces.explain import chains

    compilation = compiled(arguments, [arguments.source])
    chosen = chosen_queries(compilation, arguments.query)
    queries = [stages.query for stages in chosen]
    file = [stages.query for stages in compilation.queries]
    if arguments.stage == "code":
        return compilation.module_text(shown_command(arguments, [arguments.source]))
    if arguments.stage == "routes":
        module = compilation.module_parts("celc explain")
        return dump_routes(module, [query.name for query in queries])
    if arguments.format != "text":
        if arguments.stage == "chain":
            drawn = chains.chain_dot(queries, file)
        else:
            drawn = _automaton_drawn(arguments.stage, chosen)
        return _svg(drawn) if arguments.format == "svg" else drawn
    if arguments.stage == "chain":
        return chains.dump_chain(queries, file)
    if verdicts:
        from celc.interfaces.explain.stages import dump_formula
        from celc.interfaces.explain.verdict import verdict_of

        files = {one.query.name: file for file in compilation.files for one in file.queries}
        parts = [dump_formula(one, verdict_of(one, files[one.query.name])) for one in chosen]
    else:
        parts = [_stage_text(arguments.stage, stages) for stages in chosen]
    if arguments.stage == "formula":
        parts += filter(None, [chains.dump_names(queries, file)])
    return "\n".join(parts)


def _stage_text(stage: str, stages: Stages) -> str:
    from celc.interfaces.explain import stages as texts

    functions: dict[str, Callable[[Stages], str]] = {
        "formula": texts.dump_formula,
        "cea": texts.dump_automaton,
        "det": texts.dump_deterministic,
        "tables": texts.dump_tables,
    }
    return functions[stage](stages)


def _automaton_drawn(stage: str, chosen: Sequence[Stages]) -> str:
    from celc.interfaces.explain import graphs

    if len(chosen) > 1:
        raise CommandProblem("name one query with --query to draw it")
    draw = graphs.deterministic_dot if stage == "det" else graphs.automaton_dot
    return draw(chosen[0])


def _svg(dot: str) -> str:
    import shutil
    import subprocess

    program = shutil.which("dot")
    if program is None:
        raise CommandProblem(
            "SVG is drawn by Graphviz, whose program `dot` is not on the PATH; install Graphviz, "
            "or use --format dot"
        )
    drawn = subprocess.run(
        [program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False
    )
    if drawn.returncode:
        raise CommandProblem(f"dot failed: {drawn.stderr.strip()}")
    return drawn.stdout


def _run(arguments: argparse.Namespace) -> int:
    is_sql = language_of(arguments.source) is ROW_PATTERNS
    if arguments.table and not is_sql:
        raise CommandProblem(
            "--table is for a .sql file with a whole statement; of a query, files of events are "
            "named without an option, and the rows of FOR EACH by --parameters "
            f"{arguments.table[0]}"
        )
    if not arguments.table and all(name.endswith(SUFFIX) for name in arguments.events):
        arguments.events += project.events_for(arguments.source)
    if not arguments.table and not arguments.events:
        raise CommandProblem(f"name the files of events: celc run {arguments.source} EVENTS")
    if is_sql:
        from celc.interfaces.cli import run_rows

        source = read_source(arguments.source)
        is_whole = bool(arguments.table) or ROW_PATTERNS.is_statement(source)
        if not is_whole and (table := run_rows.table_of_file(arguments, source)) is not None:
            (file,) = arguments.events
            arguments.events, arguments.table, is_whole = [], [f"{table}={file}"], True
        if is_whole:
            from celc.interfaces.cli import run_statement

            return run_statement.run(arguments)
        return run_rows.run(arguments)
    from celc.interfaces.cli import run

    return run.run(arguments)


def _init(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.declaring import files

    return files.init(arguments)


def _test(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.testing import command

    return command.run(arguments)


def _diff(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.compare.diff import diff

    return diff(arguments)


def _example(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.compare.example import example

    return example(arguments)


def _prove(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.proving import command

    return command.prove(arguments)


def _size(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.sizing.command import size

    return size(arguments)


def _warm(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli import warm

    return warm.run(arguments)


def _import(arguments: argparse.Namespace) -> int:
    from celc.interfaces.cli.importing import command

    return command.run(arguments)


def _doctor(_: argparse.Namespace) -> int:
    from celc.interfaces.doctor import findings, of_machine

    found = [*of_machine(), *project.findings()]
    say(findings.told(found))
    return QUERY_WRONG if any(one.state == "wrong" for one in found) else FINE


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "compile": _compile,
    "check": _check,
    "explain": _explain,
    "init": _init,
    "diff": _diff,
    "example": _example,
    "prove": _prove,
    "run": _run,
    "test": _test,
    "size": _size,
    "warm": _warm,
    "fmt": _fmt,
    "import": _import,
    "doctor": _doctor,
    "lsp": _lsp,
    "serve": _serve,
    "completion": _completion,
}
