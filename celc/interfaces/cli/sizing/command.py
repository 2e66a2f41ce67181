"""The command `celc size`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace

from celc.driver.matcher import Matcher
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.output import say, tell
from celc.interfaces.cli.problems import FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import chosen_queries, compiled
from celc.interfaces.cli.sizing.calibration import seconds
from celc.interfaces.cli.sizing.model import Model, model
from celc.interfaces.cli.sizing.prediction import (
    Asked,
    batch_job,
    doubts,
    stream_job,
)
from celc.interfaces.cli.sizing.report import Sized, in_words
from celc.interfaces.cli.sizing.shape import NotKnown, Shape, shape_of


def size(arguments: argparse.Namespace) -> int:
    """Predict what the queries of a file cost; returns the exit code, 1 where nothing is known of
    one of them."""
    if language_of(arguments.source) is ROW_PATTERNS:
        raise CommandProblem(
            f"{arguments.source}: `celc size` knows queries of CEL; what MATCH_RECOGNIZE costs was "
            "not measured: time it on a sample with `celc run`"
        )
    compilation = compiled(arguments, [arguments.source])
    queries = Matcher(compilation.module_parts("celc size")).queries
    known, asked = model(), _asked(arguments)
    if arguments.calibrate:
        asked = replace(asked, machine=seconds() / float(known.measured["calibration"]))
    sized, code = [], FINE
    for stages in chosen_queries(compilation, arguments.query):
        name = stages.query.name
        try:
            shape = shape_of(stages, queries[name].plan)
            if queries[name].plan.source.partition_by and asked.keys is None:
                raise CommandProblem(
                    f"query '{name}' has PARTITION BY: say how many values it has, as in --keys 2e7"
                )
            sized.append(_sized(shape, asked, known))
        except NotKnown as problem:
            tell(f"celc: query '{name}': its cost is not known: {problem}")
            code = QUERY_WRONG
    if arguments.json:
        about = {"date": known.measured["date"], "machine": known.measured["machine"]}
        told = {"model": about, "asked": asdict(asked), "queries": [one.as_json() for one in sized]}
        say(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    else:
        say("\n".join(in_words(one, asked, known) for one in sized))
    return code


def _asked(arguments: argparse.Namespace) -> Asked:
    return Asked(
        rows=arguments.rows,
        keys=arguments.keys,
        match_rate=arguments.match_rate,
        relevant=arguments.relevant,
        text=arguments.text_bytes,
        executors=arguments.executors,
        hours=arguments.hours,
        cores=arguments.cores,
        trigger=arguments.trigger,
    )


def _sized(shape: Shape, asked: Asked, known: Model) -> Sized:
    batch = batch_job(shape, asked, known)
    why, stream = "", None
    try:
        stream = stream_job(shape, asked, known)
    except NotKnown as problem:
        why = str(problem)
    return Sized(shape, batch, stream, why, tuple(doubts(shape, asked, known)))
