"""Machine code for a file of many queries, made ahead by a second process.

To compile a file of a thousand queries takes ten seconds, and the machine code of its kernels
thirty more, all on one core. But queries that differ in constants alone share their kernels, so the
text tells which of them need some of their own, as soon as it is parsed. A second process then
compiles one query of each shape, while this one goes on with the file. It takes the last shape
first, so that both meet in the middle, and leaves the machine code where all processes look for it
(`celc_runtime.jit.kernels`). Nothing waits for it: where it cannot run, this process makes all
machine code itself.

Rejected: a second process for the kernels of a module that is loaded. It would begin ten seconds
later, and load the whole module first.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TextIO

from celc_runtime.jit.bootstrap import cache_root

from celc.diagnostics.source import Source
from celc.options import Options
from celc.parse import syntax

_MANY = 100  # queries; fewer are compiled before the second process has begun

_FEWEST, _MOST = 4, 64  # shapes that are worth another process

_SWITCH = "CELC_AHEAD"
_QUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_CONSTANT = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"\AQUERY\s+\S+?\s*:", re.IGNORECASE)
# Ctrl-C comes to both processes of a terminal. The first one says so, and this one just ends.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "import sys; sys.path[:] = {path!r}; from celc.loader.ahead import main; main()"
)

_running: list[subprocess.Popen[str]] = []


class Ahead:
    """A process for the machine code of a text, which waits for the syntax tree of it.

    It ends with this process. CELC_AHEAD=0 in the environment forbids it, and of several texts
    there is none.
    """

    def __init__(self, sources: Sequence[Source], options: Options) -> None:
        self._source = sources[0]
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        is_large = len(sources) == 1 and len(_QUERY.findall(self._source.text)) >= _MANY
        if not is_large or _cores() < 2 or not sys.executable:
            return
        from numba.core import config

        if config.DISABLE_JIT or os.environ.get(_SWITCH) == "0":
            return
        # Without a cache the machine code would be lost. Numba and pyarrow are imported there while
        # the text is parsed here.
        if cache_root() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                env=os.environ | {_SWITCH: "0"},
            )

    def __enter__(self) -> Ahead:
        return self

    def begin(self, file: syntax.File) -> None:
        """Let it make the machine code of the file's queries, if that is worth a process."""
        if self._process is None:
            return
        chosen = [*_of_each_shape(file, self._source)]
        if _FEWEST <= len(chosen) <= _MOST:
            self._give(text=_only(file, self._source, chosen), options=asdict(self._options))

    def __exit__(self, *_: object) -> None:
        """The text is compiled, or has errors. A process that has been given nothing ends."""
        if self._process is None:
            return
        self._give()
        _running[:] = [process for process in _running if process.poll() is None]
        _running.append(self._process)

    def _give(self, **arguments: object) -> None:
        """Give the process a text and the options for it, once; nothing: it ends."""
        assert self._process is not None
        stream = self._process.stdin
        assert stream is not None
        # If it has ended, it has said why.
        with suppress(BrokenPipeError):
            if not stream.closed:
                json.dump(arguments, stream)
                stream.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@atexit.register
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
    # Machine code is made of large trees, which the collector of cycles visits again and again.
    gc.disable()
    parent = os.getppid()
    _make(sys.stdin, lambda: os.getppid() == parent)


def _make(stream: TextIO, is_wanted: Callable[[], bool]) -> None:
    from celc_runtime.many.machine_code import make_machine_code

    from celc.diagnostics.errors import CelError
    from celc.loader.matcher import Matcher
    from celc.pipeline import compile_source

    given = json.load(stream)
    if not given:
        return
    lists = {name: tuple(one) for name, one in given["options"].items() if isinstance(one, list)}
    options = Options(**given["options"] | lists)
    try:
        compilation = compile_source(Source("query.cel", given["text"]), options)
    except CelError:
        return  # the other process finds the same errors
    queries = Matcher(compilation.module_parts("celc.compile")).queries
    for query in reversed(queries.values()):
        if not is_wanted():
            return
        make_machine_code(query.program)
