"""Errors and warnings of a query that runs."""

from __future__ import annotations


class EventError(ValueError):
    """The events do not fit the query: a column, a type, an order or a value; says where."""


class WorkLimitError(EventError):
    """Finding the matches that end at one event takes more steps than `max_work`. The message says
    where, and what to do."""


class TotalError(EventError):
    """A total of matches leaves its type. The message names the event at which they end, and what
    has no such limit."""


class EventWarning(UserWarning):
    """Something odd about the events that leaves the answer right, such as undeclared types."""


class PlanWarning(UserWarning):
    """A query runs in a way that may take long: on Spark by one task, or anywhere by definition.
    The message says why."""


class StateError(RuntimeError):
    """The state of a stream was not written by this query, or has been changed. The message says
    what is wrong with it."""
