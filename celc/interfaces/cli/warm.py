"""`celc warm`: makes the machine code of queries before they are run, as for an image."""

import argparse
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from celc_runtime.jit.bootstrap import cache_root
from celc_runtime.jit.shipping import module_of

from celc.diagnostics.errors import CelError, raise_all
from celc.diagnostics.files import SUFFIXES, query_files
from celc.driver.warm import NotWarmed, cores, warm
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli import row_patterns
from celc.interfaces.cli.output import say
from celc.interfaces.cli.problems import FINE, CommandProblem, words
from celc.interfaces.cli.queries import compiled, is_generated


def run(arguments: argparse.Namespace) -> int:
    """Fill the cache with the machine code of all queries of files; returns the exit code."""
    queries = [(text, name) for text in _modules(arguments) for name in _with_code(text)]
    begun = time.perf_counter()
    kernels = 0
    try:
        for made in warm(queries, arguments.processes or cores()):
            kernels += len(made.kernels)
            say(f"{made.query}: {_kernels(len(made.kernels))} in {made.seconds:.1f} s\n")
    except NotWarmed as problem:
        raise CommandProblem(str(problem)) from None
    count = f"{len(queries):,} quer{'y' if len(queries) == 1 else 'ies'}"
    seconds = time.perf_counter() - begun
    say(f"{count}: {_kernels(kernels)} in {seconds:.1f} s, kept in {cache_root()}\n")
    return FINE


def _with_code(text: str) -> Iterable[str]:
    """The names of what has code in a module: of rules by shape, the shapes."""
    queries: Mapping[str, Any] = module_of(text).__dict__["QUERIES"]
    # A standalone module brings a class of its own.
    names: Iterable[str] = getattr(queries, "compiled", queries)
    return names


def _kernels(count: int) -> str:
    return f"{count:,} kernel{'' if count == 1 else 's'}"


def _modules(arguments: argparse.Namespace) -> list[str]:
    """The texts of the modules. Each file is compiled alone: it need not fit the others."""
    modules = [path for path in arguments.source if path.suffix == ".py"]
    texts = list(map(_module_text, modules))
    paths, wrong = query_files([p for p in arguments.source if p not in modules], SUFFIXES)
    if wrong:
        raise CommandProblem("; ".join(wrong))
    problems = []
    for path in paths:
        try:
            texts.append("".join(_parts(arguments, path)))
        except CelError as problem:
            problems.append(problem)
    raise_all(problems)
    return texts


def _module_text(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    except UnicodeDecodeError:
        raise CommandProblem(f"{path}: it is no text in UTF-8") from None
    if not is_generated(path):
        raise CommandProblem(f"{path} is no module that celc has written")
    return text


def _parts(arguments: argparse.Namespace, path: Path) -> tuple[str, ...]:
    # Some machine code is known by the whole text of its module: the one that `celc run` makes.
    if language_of(path) is ROW_PATTERNS:
        return row_patterns.compiled(arguments, path).module_parts("celc run")
    return compiled(arguments, [path]).module_parts("celc run")
