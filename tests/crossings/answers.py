"""The reference's answers, those of a query, and what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from celc_runtime import CompiledQuery
from engines import Row, answer_of, union_rows
from parameters import answer_for_each
from queries_over_queries import rows_of_answer
from reference import (
    RunError,
    check_choice,
    choice_per_end,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from reference.own_functions import given_functions
from strategies_own_functions import CALLABLES
from uncertain_answers import possible_answer

from .drafts import ORDER, Draft
from .events import Events

WORK_LIMIT = 60_000

MOST_MATCHES = 2_000


class Question:
    """A query of a file, and what the reference says of it."""

    def __init__(self, draft: Draft, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.draft = draft
        own = draft.beside if name == "top" else text[text.index("QUERY main:") :]
        self.is_total = "SELECT TOTAL" in own.split("\nQUERY ")[0]
        self.per_end = None if self.is_total else choice_per_end(text, name)
        levels = [text[text.index("QUERY main:") :]] if name == "top" else []
        levels += [draft.below] if draft.below else []
        # What a level below has chosen is not said.
        self.is_open = any("LIMIT" in one or "SELECT ANY" in one for one in levels)

    def wanted(self, events: Events, rules: Sequence[Row], at_end: str) -> list[Any]:
        """The rows by brute force; RunError as the only one."""
        draft = self.draft
        # In UTC, and without a zone, as the reference has times.
        events = [
            {
                name: value.replace(tzinfo=None) if name in (ORDER, "high", "since") else value
                for name, value in event.items()
            }
            for event in events
        ]
        options: dict[str, Any] = {
            "query": self.name,
            "order_by": None if draft.uncertain or draft.lasting else draft.order_by or None,
            "ties": draft.ties,
            "at_end": at_end,
            "work_limit": WORK_LIMIT,
            "parameters": {"rule": rules} if draft.for_each else None,
        }
        with given_functions(CALLABLES):
            if not self.is_total:
                return list(evaluate(self.text, events, times=True, **options))
            try:
                return list(evaluate_totals(self.text, events, **options))
            except RunError as error:
                return [error]

    def told(self, found: Sequence[Row], wanted: Sequence[Any]) -> str:
        """What tells an answer, in the form of the cases, from the wanted one."""
        if self.is_total:
            return totals_difference(list(map(_plain, found)), list(map(_plain, wanted)))
        if self.per_end is None:
            return difference(found, wanted)
        # A choice is each rule's own.
        numbers = {_number(one) for one in (*found, *wanted)}
        try:
            for number in numbers:
                of_rule = [replace(one, times=None) for one in wanted if _number(one) == number]
                answer = [_untimed(one) for one in found if _number(one) == number]
                check_choice(of_rule, answer, self.per_end)
        except AssertionError as problem:
            return str(problem)
        return ""


def _untimed(row: Row) -> Row:
    return {name: row[name] for name in row if name not in ("start_time", "end_time")}


def _number(row: Any) -> Any:
    given = row.get("parameters", {}) if isinstance(row, Mapping) else dict(row.parameters)
    return dict(given["rule"])["nr"] if given else None


def _plain(row: Any) -> Any:
    """A row in which NaN equals NaN."""
    if isinstance(row, Mapping):
        return {name: "NaN" if value != value else value for name, value in row.items()}
    return row


def in_form(query: CompiledQuery, rows: Sequence[Row], events: Events) -> list[Row]:
    """Rows of an answer in the form of the cases, held against the events where they show them."""
    plan = query.plan
    if plan.answer.totals is not None:
        return list(rows)
    if plan.source.reads or plan.answer.collapsed:
        found = rows_of_answer(query, rows) if plan.source.order_by else union_rows(query, rows)
        if plan.source.parameters is not None:
            for one, row in zip(found, rows, strict=True):
                one["parameters"] = {plan.source.parameters.name: row[plan.source.parameters.name]}
        return found
    if plan.source.uncertain is not None and plan.source.parameters is not None:
        return _possible_for_each(query, plan.source.parameters.name, rows, events)
    if plan.source.uncertain is not None:
        return possible_answer(query, rows, events)
    if plan.source.parameters is not None:
        return answer_for_each(query, rows, events)
    return answer_of(query, rows, events)


def _possible_for_each(
    query: CompiledQuery, name: str, rows: Sequence[Row], events: Events
) -> list[Row]:
    """The rows of a query over uncertain time; those of each rule are in order."""
    of_rules: dict[str, list[Row]] = {}
    for row in rows:
        of_rules.setdefault(repr(row[name]), []).append(row)
    return [
        one | {"parameters": {name: some[0][name]}}
        for some in of_rules.values()
        for one in possible_answer(query, some, events)
    ]
