"""What can be wrong with the events a query is run on."""

from __future__ import annotations


class EventError(ValueError):
    """The events do not fit the query: a column, a type, an order, a value; and says where."""


class WorkLimitError(EventError):
    """Finding the matches that end at one event takes more steps than the query is allowed; says
    where, and what to do."""


class EventWarning(UserWarning):
    """Something about the events that the answer does not suffer from, such as undeclared types."""


class PlanWarning(UserWarning):
    """A query runs on Spark in a way that does not grow with the cluster; says why."""


class StateError(RuntimeError):
    """The state of a stream is not one that the query has written, or has been changed; says what
    is wrong with it."""
