"""Machine code for a file of many queries, made ahead by a second process.

A file of a thousand queries takes ten seconds to compile, and the machine code of its kernels twenty
seconds more, all on one core. But queries that differ in constants alone share their kernels, so
the text tells which of them need one of their own, as soon as it is parsed. A second process then
compiles one query of each shape while this one goes on with the file. It takes the last shape
first, so that both meet in the middle, and leaves the machine code where all processes look for it
(`celc_runtime.jit.kernels`). Nothing waits for it: where it cannot run, this process makes all
machine code itself.

Rejected: a second process for the kernels of a module that is loaded. It would begin ten seconds
later, and load the whole module first.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from celc.diagnostics.source import Source
from celc.options import Options
from celc.parse import syntax

_MANY = 100
"""Fewer queries are compiled before the second process has begun."""

_FEWEST, _MOST = 4, 64
"""So many shapes are worth a process of its own."""

_SWITCH = "CELC_AHEAD"
_CONSTANT = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"\AQUERY\s+\S+?\s*:", re.IGNORECASE)
_PROGRAM = "import sys; sys.path[:] = {path!r}; from celc.ahead import main; main()"

_running: list[subprocess.Popen[str]] = []


def begin_ahead(file: syntax.File, source: Source, options: Options) -> None:
    """Start a process that makes the machine code of a file's queries, if that is worth one.

    It ends with this process. CELC_AHEAD=0 in the environment forbids it.
    """
    if len(file.queries) < _MANY or os.environ.get(_SWITCH) == "0" or _cores() < 2:
        return
    from numba.core import config

    chosen = [*_of_each_shape(file, source)]
    if config.DISABLE_JIT or not sys.executable or not _FEWEST <= len(chosen) <= _MOST:
        return
    _running[:] = [process for process in _running if process.poll() is None]
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ | {_SWITCH: "0"},
    )
    if not _running:
        atexit.register(_end_all)
    _running.append(process)
    given = {
        "text": _only(file, source, chosen),
        "name": source.name,
        "order_by": options.order_by,
        "tiebreak": options.tiebreak,
        "ties": options.ties,
        "at_end": options.at_end,
        "first_order": options.first_order,
    }
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(given))
        process.stdin.close()
    except BrokenPipeError:
        # It has ended, and has said why.
        return


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_all() -> None:
    for process in _running:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _of_each_shape(file: syntax.File, source: Source) -> Iterator[syntax.Query]:
    """The first query of each shape: of queries whose texts differ in constants alone."""
    shapes = set()
    for query in file.queries:
        text = _NAME.sub("", source.text[query.span.start : query.span.end])
        shape = " ".join(_CONSTANT.sub("?", text).split())
        if shape not in shapes:
            shapes.add(shape)
            yield query


def _only(file: syntax.File, source: Source, chosen: list[syntax.Query]) -> str:
    """The text of a file with some of its queries only."""
    kept = {query.span.start for query in chosen}
    parts, at = [], 0
    for query in sorted(file.queries, key=lambda query: query.span.start):
        if query.span.start not in kept:
            parts.append(source.text[at : query.span.start])
            at = query.span.end
    return "".join([*parts, source.text[at:]])


def main() -> None:
    """Make the machine code of the queries in the text on standard input, the last one first."""
    given = json.load(sys.stdin)
    parent = os.getppid()
    try:
        _make(given, lambda: os.getppid() == parent)
    except KeyboardInterrupt:
        return  # the other process says it


def _make(given: dict[str, Any], is_wanted: Callable[[], bool]) -> None:
    from celc_runtime.many.machine_code import make_machine_code

    import celc
    from celc.diagnostics.errors import CelError

    try:
        module = celc.compile(given.pop("text"), **given)
    except CelError:
        return  # the other process finds the same errors
    programs = {name: query.program for name, query in reversed(module.queries.items())}
    for name, program in programs.items():
        if not is_wanted():
            return
        make_machine_code({name: program})
