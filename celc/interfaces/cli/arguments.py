"""The words of the command line: commands, their options, and the values that these take. It
imports almost nothing, because `celc --help` needs neither compiler nor runtime.

Long: a list of all commands and options.
"""

import argparse
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK, MOST_MAX_WORK, SIMULTANEOUS
from celc.interfaces.cli import completion
from celc.interfaces.cli.compare.arguments import add_comparisons
from celc.interfaces.cli.importing.arguments import add_import
from celc.interfaces.cli.proving.arguments import add_prove
from celc.interfaces.cli.sizing.arguments import add_size
from celc.options import AT_END, is_seconds, is_work
from celc.version import VERSION


# Long: a list of the commands.
def parser() -> argparse.ArgumentParser:
    """The parser of the command line; `command` of its result is the name of the command."""
    parser = argparse.ArgumentParser(
        prog="celc", description="Compiles CEL, a logic of complex events, for PySpark."
    )
    parser.add_argument("--version", action="version", version=f"celc {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    _add_init(commands)

    compile_ = _command(commands, "compile", "write the Python module of queries", several=True)
    compile_.add_argument("-o", "--output", type=Path, help="default: the file's name + _udf.py")
    compile_.add_argument("--force", action="store_true", help="overwrite a file that is not ours")

    compile_.add_argument(
        "--standalone", action="store_true", help="put the runtime into the module as well"
    )
    compile_.add_argument(
        "--to",
        choices=["module", "spark-sql", "duckdb-sql", "spark-functions"],
        default="module",
        help="a Python module, or a statement of SQL, which is printed; spark-functions: of a .sql "
        "file a module with table functions, and the statement over them (default: module)",
    )
    compile_.add_argument(
        "--table", help="the table that a statement reads (default: called like the stream)"
    )
    compile_.add_argument(
        "--positions",
        action="store_true",
        help="answers have start_pos, end_pos and pos on Spark, and in a statement, as well",
    )
    compile_.add_argument(
        "--match-id",
        action="store_true",
        help="answers whose rows are matches have a first column match_id",
    )

    compile_.add_argument(
        "--prove",
        action="store_true",
        help="check each pass of the compilation, and write what is proved beside the module",
    )
    compile_.add_argument(
        "--by-shape",
        action="store_true",
        help="write rules that differ in constants alone as rows of one query: for thousands of "
        "files of one rule",
    )
    compile_.add_argument(
        "--processes",
        type=_number_of("processes"),
        default=1,
        metavar="N",
        help="how many processes check files at a time, with --by-shape (default: 1)",
    )
    compile_.add_argument(
        "--keep-going",
        action="store_true",
        help="write the module of the files without errors, and exit with 1 where some have errors",
    )

    _add_near(compile_, "a module whose near_misses finds what would match if one part were bent")

    check = _command(commands, "check", "show all errors and warnings of queries", several=True)
    check.add_argument("--format", choices=["text", "json", "sarif"], default="text")
    check.add_argument(
        "-v", "--verbose", action="store_true", help="say what each query is and costs"
    )

    explain = _command(commands, "explain", "say what a query is and costs, or show a stage of it")
    stages = ["formula", "chain", "cea", "det", "tables", "routes", "code"]
    explain.add_argument(
        "--stage",
        choices=stages,
        help="one stage alone (default: what the query is and costs, and its formula; html: det)",
    )
    explain.add_argument(
        "--format",
        choices=["text", "dot", "svg", "html"],
        default="text",
        help="html: a page with the automaton drawn, needs no Graphviz",
    )
    explain.add_argument(
        "events",
        nargs="*",
        metavar="EVENTS",
        help="with html: files as `celc run` reads them; counts how often transitions are taken",
    )
    explain.add_argument("--query", help="which query of the file (default: all)")
    explain.add_argument("-o", "--output", type=Path, help="a file instead of standard output")
    explain.add_argument("--force", action="store_true", help="overwrite the output file")
    _add_input_options(explain)

    _add_run(commands)
    _add_test(commands)

    add_comparisons(partial(_command, commands), _add_forms, _seconds)
    add_prove(partial(_command, commands))
    add_size(partial(_command, commands))

    help = "make the machine code of queries before they are run"
    warm = _command(commands, "warm", help, several=True)
    warm.add_argument(
        "--processes",
        type=_number_of("processes"),
        metavar="N",
        help="how many processes make it at a time (default: one for each core)",
    )
    _add_fmt(commands)

    add_import(commands)

    help = "look at packages, Java, cache and settings, and say what to mend"
    commands.add_parser("doctor", help=help, description=help)

    help = "run the language server that editors start (on standard input and output)"
    lsp = commands.add_parser("lsp", help=help, description=help)
    checked = lsp.add_argument_group("how queries are checked")
    add_options(checked, longest="5")
    _add_schema(checked)

    _add_serve(commands)

    help = "print a script with which a shell completes celc's command line"
    completing = commands.add_parser("completion", help=help, description=help)
    completing.add_argument("shell", choices=completion.SHELLS)
    return parser


def _add_serve(commands: Any) -> None:
    help = "serve a page that checks and runs queries over pasted rows, on this machine alone"
    serve = commands.add_parser("serve", help=help, description=help)
    serve.add_argument(
        "--local",
        action="store_true",
        required=True,
        help="only this machine is answered, on its loopback address; there is no other way",
    )
    serve.add_argument(
        "--port", type=_port, default=8765, metavar="N", help="0: one that is free (default: 8765)"
    )
    add_options(serve.add_argument_group("how queries are checked and run"), longest="5")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: give a whole number up to 65535")
    return int(text)


def _add_near(command: argparse.ArgumentParser, help: str) -> None:
    command.add_argument("--near", action="store_true", help=help)
    command.add_argument(
        "--near-by",
        action="append",
        default=[],
        metavar="SHARE|ATTRIBUTE=AMOUNT",
        help="with --near: how far values move, 0.1 of each by default, or an amount (repeatable)",
    )
    command.add_argument(
        "--near-parts",
        choices=["all"],
        help="with --near: comparisons that cannot bend are taken away, one at a time",
    )


def _add_init(commands: Any) -> None:
    help = "write the declaration of events in files, and a first query"
    init = commands.add_parser("init", help=help, description=help)
    init.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="files, folders, patterns of names in quotes, or - for standard input",
    )
    init.add_argument(
        "--type-column",
        metavar="NAME",
        help="the column of the event types (default: type, if there is one)",
    )
    init.add_argument(
        "--name", metavar="STREAM", help="the stream's name (default: that of the file or folder)"
    )
    init.add_argument("-o", "--output", type=Path, help="a file instead of standard output")
    init.add_argument("--force", action="store_true", help="overwrite the output file")
    _add_forms(init)


# Long: one option after another.
def _add_run(commands: Any) -> None:
    run = _command(commands, "run", "find the matches in files of events")
    _add_near(run, "near misses in place of matches: what would match if one part were bent")
    run.add_argument(
        "events",
        nargs="*",
        metavar="EVENTS",
        help="files, folders, patterns of names in quotes, or - for standard input (default: the "
        "setting events)",
    )
    run.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a table of a .sql file with a whole statement, which DuckDB runs; a file without a "
        "name is the table called as it is",
    )
    run.add_argument("--query", help="which query of the file")
    run.add_argument(
        "--format",
        choices=["table", "json", "rows", "csv", "parquet", "html"],
        help="default: what the ending of the output file says, else a table; json has the "
        "positions of labels, rows has the columns with all attributes, as lines of JSON",
    )
    run.add_argument(
        "-o",
        "--output",
        type=Path,
        help="a file instead of standard output; {query} in its name stands for the name of each "
        "query, so that each gets a file",
    )
    run.add_argument("--force", action="store_true", help="overwrite the output file")
    run.add_argument(
        "--csv-safe",
        action="store_true",
        help="csv for spreadsheets: a ' stands before texts that they would run as formulas",
    )
    run.add_argument(
        "--strict-schema",
        action="store_true",
        help="an attribute that no row of the events has is an error",
    )
    run.add_argument(
        "--max-matches",
        type=_number_of("matches"),
        metavar="N",
        help="stop after this many matches in all (LIMIT: for each event that ends a match)",
    )
    run.add_argument(
        "--threads",
        type=_number_of("threads"),
        metavar="N",
        help="cores for events in memory (default: those that celc may use; events in order are "
        "read batch by batch by one, and gathered for more)",
    )
    run.add_argument(
        "--memory",
        type=_bytes,
        metavar="SIZE",
        help="such as 4GiB: how much a run may take, about (default: three quarters of what is "
        "free); more events of a query with PARTITION BY are read in several turns",
    )
    run.add_argument(
        "--match-id",
        action="store_true",
        help="a first column match_id, which tells each match from all others",
    )
    _add_asked(run)
    _add_input_options(run)


def _add_test(commands: Any) -> None:
    help = "run the tests of queries: what is missing in their answers, and what is too much"
    test = commands.add_parser("test", help=help, description=help)
    test.add_argument(
        "tests",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="files *.test.toml, or folders with such (default: this folder)",
    )
    test.add_argument("--junit", type=Path, metavar="FILE", help="the results as XML of JUnit")
    test.add_argument(
        "--write",
        action="store_true",
        help="write the answers of cases that do not pass into their files, for review",
    )
    test.add_argument(
        "--spark", action="store_true", help="run the cases in a session of Spark on this machine"
    )
    test.add_argument(
        "--mutate",
        action="store_true",
        help="change one part of a query at a time, and list the changes that no case notices",
    )


def _add_asked(run: argparse.ArgumentParser) -> None:
    """Arguments of the calls of the queries: bounds of slices, tables of parameters."""
    run.add_argument(
        "--parameters",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="the rows of a parameter set (FOR EACH NAME), in a file like those of events",
    )
    run.add_argument(
        "--after",
        metavar="TIME",
        help="only rows that become known after this value of the first order column, without "
        "positions; of the events before it, those are read that these rows need",
    )
    run.add_argument(
        "--until",
        metavar="TIME",
        help="only rows that become known up to this value; no event up to it is missing",
    )


def _add_fmt(commands: Any) -> None:
    help = "write queries in the canonical layout"
    fmt = commands.add_parser("fmt", help=help, description=help)
    fmt.add_argument(
        "source",
        type=Path,
        nargs="*",
        metavar="query.cel",
        help="files, folders of .cel and .sql files, or - for standard input (default: the setting "
        "paths)",
    )
    fmt.add_argument(
        "--check",
        action="store_true",
        help="change no file; exit with 1 where one has another layout",
    )
    fmt.add_argument("--diff", action="store_true", help="change no file; show what would change")
    fmt.add_argument(
        "--dialect",
        choices=["cel", "match_recognize"],
        help="of standard input (default: cel); of files the ending says it",
    )


def _add_input_options(run: argparse.ArgumentParser) -> None:
    """How `celc run` and `celc explain` read events."""
    reading = _add_forms(run)
    reading.add_argument(
        "--on-bad-row",
        type=Path,
        metavar="skip|error|FILE",
        help="rows of CSV and JSON that cannot be read are left out and counted, or are errors "
        "(default); FILE: left out, counted, and written to this file as lines of JSON",
    )
    reading.add_argument(
        "--on-null-type",
        choices=["skip", "error"],
        default="error",
        help="rows whose event type is NULL are left out and counted, or are errors (default)",
    )


def _add_forms(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The forms of files and of the texts in them."""
    reading = parser.add_argument_group("how the events are read")
    reading.add_argument(
        "--input-format",
        choices=["csv", "json", "parquet"],
        help="default: what the endings of the names say",
    )
    reading.add_argument(
        "--delimiter",
        metavar="SIGN",
        help="what is between the fields of CSV (default: ,); tab for a tab",
    )
    reading.add_argument(
        "--null-text",
        action="append",
        default=[],
        metavar="TEXT",
        help="a text without quotes that stands for NULL in CSV, besides the empty one",
    )
    reading.add_argument(
        "--time-format",
        metavar="FORMAT",
        help="of times in CSV and JSON: as in '%%d/%%m/%%Y %%H:%%M:%%S', or s, ms, us, ns for "
        "numbers since 1970 (default: ISO 8601)",
    )
    reading.add_argument(
        "--time-zone",
        default="UTC",
        metavar="ZONE",
        help="of times that name none, as in Europe/Berlin (default: UTC)",
    )
    return reading


def _command(
    commands: Any,
    name: str,
    help: str,
    *,
    several: bool = False,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    if several:
        more = "files, folders of .cel files"
        more += {
            "check": ", or - for standard input (default: the setting paths)",
            "warm": ", or modules that celc has written",
        }.get(name, "; several become one module")
        more += "; a .sql file has a query with MATCH_RECOGNIZE"
        nargs = "*" if name == "check" else "+"
        parser.add_argument("source", type=Path, nargs=nargs, metavar="query.cel", help=more)
    else:
        more = "or a .sql file with MATCH_RECOGNIZE"
        parser.add_argument("source", type=Path, metavar="query.cel", help=more)
    add_options(parser)
    if name != "run":
        _add_schema(parser)
    parser.add_argument(
        "--functions",
        type=Path,
        metavar="FILE.py",
        help="the functions of Python that the queries declare with FUNCTION; the file is run",
    )
    return parser


def _add_schema(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="events whose columns are those of a table that is not declared",
    )


def add_options(parser: argparse._ActionsContainer, longest: str = "no end") -> None:
    """Add the options of a compilation; `longest` is its time limit by default."""
    parser.add_argument(
        "--order-by",
        metavar="COLUMNS",
        help="the columns that order the events, separated by commas",
    )
    parser.add_argument(
        "--tiebreak",
        metavar="COLUMNS",
        help="columns that tell apart events which are equal in the order columns",
    )
    parser.add_argument(
        "--ties",
        choices=[SIMULTANEOUS],
        help="events which are equal in the order columns are one instant: none comes before "
        "another",
    )
    parser.add_argument(
        "--at-end",
        choices=AT_END,
        default="open",
        help="whether more events may come after the input; closed: none, so that all matches with "
        "an absence at their end are decided (default open)",
    )
    parser.add_argument(
        "--type-column", metavar="NAME", help="the column of the event types (default: type)"
    )
    parser.add_argument(
        "--max-states",
        type=int,
        default=DEFAULT_MAX_STATES,
        metavar="N",
        help=f"the most states that are made beforehand (default {DEFAULT_MAX_STATES})",
    )
    parser.add_argument(
        "--max-work",
        type=_count,
        default=DEFAULT_MAX_WORK,
        metavar="N",
        help="stop where conditions across events take more steps than this at one event without "
        f"finding a match (default {DEFAULT_MAX_WORK:,})",
    )
    parser.add_argument(
        "--first-order",
        action="store_true",
        help="read labels as the first paper does: each is one position",
    )
    parser.add_argument(
        "--max-compile-seconds",
        type=_seconds,
        metavar="N",
        help=f"end the compilation with an error when it has taken so long (default: {longest})",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not is_work(int(text)):
        raise argparse.ArgumentTypeError(
            f"{text} is no number of steps: give a whole number from 1 to {MOST_MAX_WORK}"
        )
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not is_seconds(seconds):
        raise argparse.ArgumentTypeError(
            f"{text} is no time: give a positive number of seconds, such as 30"
        )
    return seconds


def _number_of(things: str) -> Callable[[str], int]:
    """What reads a whole number from 1, of things that a message names."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(
                f"{text} is no number of {things}: give a whole number from 1"
            )
        return int(text)

    return read


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def _bytes(text: str) -> int:
    """A size such as `4GiB`, in bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]i?B)", text, re.IGNORECASE | re.ASCII)
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is no size: give a number and a unit, such as 500MB or 4GiB"
        )
    return size
