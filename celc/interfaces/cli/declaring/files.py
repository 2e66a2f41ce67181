"""`celc init`: the declaration of files of events, with the command that runs its query."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from celc.interfaces.cli.declaring.samples import Sample, sample_of
from celc.interfaces.cli.declaring.shape import CannotDeclare, shape_of
from celc.interfaces.cli.declaring.text import declaration
from celc.interfaces.cli.output import check_output, say, written
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.reading.events import Form
from celc.interfaces.cli.reading.origins import opened_origins
from celc.interfaces.cli.reading.times import TimeForm


def init(arguments: argparse.Namespace) -> int:
    """Write the declaration; returns the exit code."""
    from celc.interfaces.cli.run import form_of

    files: list[str] = arguments.data
    paths = [Path(one) for one in files if one != "-"]
    check_output(arguments.output, force=arguments.force, inputs=paths)
    text = declared_files(
        files,
        form_of(arguments),
        type_column=arguments.type_column,
        name=arguments.name,
        input_format=arguments.input_format,
        query=arguments.output,
    )
    if arguments.output is None:
        say(text)
    else:
        with written(arguments.output) as out:
            out.write(text.encode())
    return FINE


def declared_files(
    files: Sequence[str],
    form: Form,
    *,
    type_column: str | None,
    name: str | None,
    input_format: str | None = None,
    query: Path | None = None,
) -> str:
    """The declaration of files; `query` is the file that it is written to.

    Raises CommandProblem for files that cannot be read or declared.
    """
    with opened_origins(files, input_format) as origins:
        sample = sample_of(origins, form, guess=True)
    called = name or _name_of(files)
    try:
        shape = shape_of(sample, called, type_column)
    except CannotDeclare as problem:
        where = files[0] if len(files) == 1 else f"{len(files)} files"
        raise CommandProblem(f"{where}: {problem}") from None
    given = query or Path(f"{called}.cel")
    words = ["celc", "run", str(given), *files]
    words += [] if input_format is None else ["--input-format", input_format]
    words += [] if shape.types in (None, "type") else ["--type-column", str(shape.types)]
    words += ["--on-null-type", "skip"] if shape.untyped else []
    command = " ".join(map(shlex.quote, (*words, *_options(sample))))
    return declaration(sample, shape, called, [f"Run it: {command}"])


def _name_of(files: Sequence[str]) -> str:
    """The name of the stream: that of the first file or folder, without its endings."""
    stem = Path(files[0]).name.partition(".")[0]
    is_name = len(files) == 1 and files[0] != "-" and stem.strip("*?[]-")
    return stem if is_name and not set(stem) & set("*?[") else "events"


def _options(sample: Sample) -> Iterator[str]:
    """How `celc run` reads texts as the sample was read."""
    form = sample.form
    if form.delimiter is not None:
        yield from ("--delimiter", "tab" if form.delimiter == "\t" else form.delimiter)
    for text in form.null_texts:
        yield from ("--null-text", text)
    if form.times.format is not None:
        yield from ("--time-format", form.times.format)
    if form.times.zone != TimeForm().zone:
        yield from ("--time-zone", form.times.zone)
