"""What a plan costs, in numbers: before the run as far as it is known, and measured at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from celc_runtime.plan.frozen import frozen
from celc_runtime.spark.input.probe import shuffled_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NONE = "none"
ALL = "all that are read"
MATTERING = "those that can matter"
_NOT_COUNTED = "not counted"


@frozen
class RowNumbers:
    """The numbers of rows of a plan, in words."""

    read: str
    """Rows that Spark reads."""
    relevant: str
    """Rows that can change the answer."""
    to_python: str
    """Rows that reach Python."""
    counts_read: bool = False
    """Whether each row that is read reaches Python once, so that a count there is `read`."""
    counts_relevant: bool = False
    """Whether exactly the relevant rows reach Python, each once, so that a count is `relevant`."""

    def measured(self, to_python: int) -> RowNumbers:
        """The numbers at the end of a run, given the number of rows that reached Python."""
        count = f"{to_python:,}"
        return RowNumbers(
            count if self.counts_read else _NOT_COUNTED,
            count if self.counts_relevant else _NOT_COUNTED,
            self.to_python if self.to_python == NONE else count,
        )


@frozen
class PlanNumbers:
    """What a plan costs."""

    rows: RowNumbers
    shuffled: str  # the numbers of columns that shuffles move, in words
    jobs: str  # the jobs before the first row, in words

    def __str__(self) -> str:
        return "\n".join(
            (
                f"rows read: {self.rows.read}",
                f"rows that can matter: {self.rows.relevant}",
                f"rows to Python: {self.rows.to_python}",
                f"columns shuffled: {self.shuffled}",
                f"jobs before the first row: {self.jobs}",
            )
        )


def in_numbers(rows: RowNumbers, matches: DataFrame, jobs: Sequence[str]) -> PlanNumbers:
    """The numbers of a plan. `jobs`: what was asked of Spark before the first row, job by job."""
    told = f"{len(jobs)} ({', '.join(dict.fromkeys(jobs))})" if jobs else NONE
    shuffles = shuffled_columns(matches)
    return PlanNumbers(rows, " and ".join(map(str, shuffles)) or NONE, told)
