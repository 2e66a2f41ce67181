"""The command `celc serve`."""

from __future__ import annotations

import argparse
from dataclasses import replace

from celc.interfaces.cli.output import tell
from celc.interfaces.cli.problems import CommandProblem, words
from celc.interfaces.cli.queries import options_of
from celc.interfaces.cli.serving.limits import SECONDS
from celc.interfaces.cli.serving.server import CHECK_SECONDS, HOST, Playground, Server


def serve(arguments: argparse.Namespace) -> None:
    """Serve the playground until a signal ends it. Raises CommandProblem for a port that cannot be
    had."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--local", action="store_true")
    own.add_argument("--port")
    of_run = own.parse_known_args(arguments.given[1:])[1]
    options = options_of(arguments)
    if options.max_compile_seconds is None:
        options = replace(options, max_compile_seconds=CHECK_SECONDS)
    try:
        serving = Server(Playground(options, of_run, SECONDS), arguments.port)
    except OSError as problem:
        raise CommandProblem(f"--port {arguments.port}: {words(problem)}") from None
    with serving:
        tell(f"celc: http://{HOST}:{serving.server_port}/ (Ctrl+C ends it)")
        serving.serve_forever()
