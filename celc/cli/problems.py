"""What can be wrong with a command line or with a file."""

from __future__ import annotations

FINE, QUERY_WRONG, FILE_WRONG = 0, 1, 2
"""Exit codes: fine; the query is wrong; the command line or a file is. A signal adds 128 to its
number."""


class ReadEnough(Exception):
    """The reader of standard output has closed it, as `head` does: nothing is wrong."""


class CommandProblem(Exception):
    """Something wrong with the command line or with a file, in words for the user."""


def words(problem: OSError) -> str:
    """What the system says of a file, without the number and the name."""
    return problem.strerror or str(problem)
