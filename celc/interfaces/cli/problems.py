"""Problems with a command line or with a file, and exit codes."""

FINE, QUERY_WRONG, FILE_WRONG = 0, 1, 2
"""Exit codes: all is fine; the query is wrong; the command line or a file is wrong. The code of a
signal is its number plus 128."""


class ReadEnough(Exception):
    """The reader of standard output has closed it, as `head` does. Nothing is wrong."""


class CommandProblem(Exception):
    """Something wrong with the command line or with a file, in words for the user."""


class RowProblem(CommandProblem):
    """A row of a file that cannot be read."""


def words(problem: OSError) -> str:
    """The words of the system about a file, without the number and the name."""
    return problem.strerror or str(problem)
