"""`celc explain --format html`: the automaton of a query as a page, with counts where events are
given."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.output import check_output, say, written
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.queries import chosen_queries, compiled

if TYPE_CHECKING:
    from celc.driver.pipeline import Compilation, Stages
    from celc.interfaces.pages.counts import Taken


def explain(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit code."""
    if language_of(arguments.source) is ROW_PATTERNS:
        raise CommandProblem("the automaton of MATCH_RECOGNIZE is shown as text: --format text")
    compilation = compiled(arguments, [arguments.source])
    chosen = chosen_queries(compilation, arguments.query)
    if len(chosen) > 1:
        names = ", ".join(stages.query.name for stages in chosen)
        raise CommandProblem(f"name one query with --query to draw it: {names}")
    (stages,) = chosen
    if stages.minimal.as_met:
        raise CommandProblem(
            f"query '{stages.query.name}' has too many states to draw: they are made as events "
            "lead to them; --stage cea --format dot draws the automaton that they are made of"
        )
    from celc.interfaces.pages.automaton import automaton_page

    if not arguments.events:
        check_output(arguments.output, force=arguments.force, inputs=[arguments.source])
    taken = _taken(arguments, compilation, stages) if arguments.events else None
    page = automaton_page(stages, compilation.files[0].source.text, taken)
    if arguments.output is None:
        say(page)
    else:
        with written(arguments.output) as out:
            out.write(page.encode())
    return FINE


def _taken(arguments: argparse.Namespace, compilation: Compilation, stages: Stages) -> Taken:
    """How often the events of files take the transitions. Raises CommandProblem for events that
    cannot be read, or that do not fit the query."""
    from celc_runtime import EventError

    from celc.driver.matcher import Matcher
    from celc.interfaces.cli.reading.origins import opened_origins
    from celc.interfaces.cli.reading.stream import EventStream
    from celc.interfaces.cli.reading.wanted import Wanted
    from celc.interfaces.cli.run import check_form, damage_of, form_of, placed
    from celc.interfaces.pages.counts import taken_by
    from celc.interfaces.pages.report import conforming_table

    form = form_of(arguments)
    with opened_origins(arguments.events, arguments.input_format) as origins:
        inputs = [arguments.source, *(origin.file for origin in origins)]
        check_output(arguments.output, force=arguments.force, inputs=inputs)
        check_form(arguments, origins)
        query = Matcher(compilation.module_parts("celc explain")).queries[stages.query.name]
        file = [one.query for one in compilation.queries]
        try:
            with damage_of(arguments, origins, inputs) as damage:
                wanted = Wanted.of(stages.query, query, file)
                events = EventStream(origins, wanted, form, damage)
                table = conforming_table(query, events.batches())
                events.tell_left_out()
            return taken_by(stages, query.program, table)
        except EventError as problem:
            raise placed(events, problem) from None
        except ValueError as problem:
            raise CommandProblem(str(problem)) from None
