"""Errors and warnings of a query that runs."""


class EventError(ValueError):
    """The events do not fit the query (a column, a type, an order or a value). It says where."""


class WorkLimitError(EventError):
    """The matches that end at one event take more than `max_work` steps. It says where, and what to
    do."""


class FunctionError(EventError):
    """A function of one's own ended with an error. It names the function and its error."""


class TotalError(EventError):
    """A total of matches leaves its type. It names the event at which they end, and an alternative
    without this limit."""


class EventWarning(UserWarning):
    """The events are odd, but the answer is right; for example, there are undeclared types."""


class OptionClash(ValueError):
    """A query has something that an option of a call does not go with. It says what.

    `option` is the name of the option.
    """

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


class PlanWarning(UserWarning):
    """A query may take long: on Spark it runs as one task, or it runs by definition. It says
    why."""


class StateError(RuntimeError):
    """The state of a stream is not of this query, or was changed. It says what is wrong."""
