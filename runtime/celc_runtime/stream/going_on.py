"""Whether a query goes on with the state of another one, and from when it has to begin anew if not.

The driver decides that, before the stream starts, for a checkpoint that the call names. Each header
says what the query needed that wrote it (`stored/needs`). A query that goes on with less would drop
events before they reach any bucket, so that no header shows that it was there. So each change is
noted in the checkpoint, and the next query is compared with the last one that ran.

The rows of the new query are those that become known after the last time of which the old one has
returned all rows, as with `after=`. So the answers of both are together those of one query until
then and of another afterwards.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from celc_runtime.arrow.tables.known_times import known_of
from celc_runtime.arrow.tables.slices import Slice, shown_bound
from celc_runtime.plan.errors import StateError
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import Asked, why_not
from celc_runtime.stream.finish import (
    batches_in,
    files_in,
    first_line,
    headers_of,
    refuse_finished,
)
from celc_runtime.stream.formats import StreamFormats
from celc_runtime.stream.stored.identity import OtherQuery
from celc_runtime.stream.stored.needs import Needs, lacking, needs_in
from celc_runtime.stream.stored.state import query_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOTES = "celc_queries"
_AFTER = re.compile("after='([^']+)'")


class Query(NamedTuple):
    """A query that a checkpoint has had."""

    identity: bytes
    record: bytes  # of what it needs; empty: nothing is said
    after_batch: int  # the last micro-batch before it
    since: int | None  # its rows are those known after this (microseconds); None: all


class GoesOn(NamedTuple):
    """How a query goes on with a checkpoint."""

    accepts: tuple[tuple[bytes, bytes], ...]  # as of `StreamOptions`
    since: int | None  # as of `Query`
    new: tuple[Query, ...] = ()  # to be noted


class NotGoneOn(StateError):
    """The error for a query that does not go on with a checkpoint: why, and what to do instead, in
    words; after: the value for `after=` of a new checkpoint, None: there is none."""

    def __init__(self, name: str, why: Sequence[str], instead: str) -> None:
        super().__init__(
            f"query {name!r}: the checkpoint holds the state of another query, and what is "
            f"kept there does not suffice for this one: {'; '.join(why)}. {instead}"
        )
        self.why = [*why]
        self.instead = instead

    @property
    def after(self) -> str | None:
        """The value for `after=` with which a new checkpoint loses nothing; None: there is none."""
        found = _AFTER.search(self.instead)
        return None if found is None else found[1]


class Known(NamedTuple):
    """What a checkpoint says of its queries and of how far it has come."""

    headers: tuple[tuple[int, bytes], ...]  # labels of buckets, and their headers
    notes: tuple[Query, ...]  # in their order
    last_batch: int  # that has been completed
    begun_batch: int
    watermark: int | None  # microseconds, of the last completed micro-batch; None: there was none


def last_query(known: Known) -> Needs | None:
    """What the query needs that ran last on a checkpoint; None: nothing says it."""
    if known.notes:
        return needs_in(running(known.notes, known.last_batch).record)
    found = (query_in(header) for _, header in known.headers)
    records = [one[1] for one in found if one is not None and one[1]]
    return needs_in(records[0]) if records else None


def known_of_checkpoint(spark: SparkSession, checkpoint: str, state: str) -> Known | None:
    """None: no micro-batch has been completed. state: the name of the state variable."""
    progress = _progress(spark, checkpoint)
    if progress is None:
        return None
    headers = tuple(headers_of(spark, checkpoint, state, 1))
    return Known(headers, tuple(_notes(spark, checkpoint)), *progress)


def _progress(spark: SparkSession, checkpoint: str) -> tuple[int, int, int | None] | None:
    """The last three parts of `Known`; None: no micro-batch has been completed."""
    done = batches_in(spark, posixpath.join(checkpoint, "commits"))
    if not done:
        return None
    begun = batches_in(spark, posixpath.join(checkpoint, "offsets"))
    last = max(done)
    return last, max(begun, default=last), _watermark_of(spark, checkpoint, last)


def _watermark_of(spark: SparkSession, checkpoint: str, batch: int) -> int | None:
    """The watermark (microseconds) that a micro-batch has seen; None: there was none."""
    told = first_line(spark, posixpath.join(checkpoint, "offsets", str(batch)), "{")
    return 1000 * int(json.loads(told).get("batchWatermarkMs", 0)) or None


def go_on(
    program: Program, formats: StreamFormats, spark: SparkSession, checkpoint: str, state: str
) -> GoesOn:
    """How a query goes on with a checkpoint, which need not exist yet; notes it there.

    formats: of the query. Raises StateError where it cannot: the error says why, and from when on
    the query has to begin with a checkpoint of its own.
    """
    refuse_finished(spark, checkpoint, f"query {program.name!r}")
    known = known_of_checkpoint(spark, checkpoint, state)
    if known is None:
        return GoesOn((), None)
    found = decided(program, formats, known, checkpoint)
    if found.new:
        _note(spark, checkpoint, [*known.notes, *found.new], len(known.notes))
    return found


def decided(program: Program, formats: StreamFormats, known: Known, checkpoint: str) -> GoesOn:
    """How a query goes on with a checkpoint of which this is known; writes no note.

    Raises StateError as `go_on`.
    """
    identity, record = formats.states.identity, formats.states.fresh(0).record
    written = [one for _, header in known.headers if (one := query_in(header)) is not None]
    before = [*known.notes]
    if not before:
        others = [Query(*one, -1, None) for one in dict.fromkeys(written) if one[0] != identity]
        if not others:
            return GoesOn((), None)
        # A header of an earlier version says nothing, but another one of the same query may.
        before = sorted(others, key=lambda one: bool(one.record))[-1:]
    last = running(before, known.last_batch)
    accepts = {one.identity: one.record for one in before if one.identity != identity}
    found = GoesOn(tuple(accepts.items()), last.since)
    if last.identity == identity:
        if before[-1].identity == identity:
            return found
        back = last._replace(after_batch=known.last_batch)
        return found._replace(new=(back,))
    old, new = needs_in(last.record), needs_in(record)
    assert new is not None
    reasons = why_not_gone_on(old, new)
    if reasons:
        way = after_instead([program], (old or new).given_by, known, checkpoint, (old or new).mixes)
        raise NotGoneOn(program.name, reasons, way)
    assert old is not None
    since = None if known.watermark is None else old.given_by(known.watermark)
    fresh = Query(identity, record, known.last_batch, since)
    noted = (fresh,) if known.notes else (*before, fresh)
    return found._replace(since=since, new=noted)


def why_not_gone_on(old: Needs | None, new: Needs) -> list[str]:
    """Why a query cannot go on with the state of another one; empty: it can. None: the state does
    not say what that one needed."""
    if old is None:
        return ["it was written by a version of celc that notes less of a query, or more"]
    return lacking(old, new)


def running(queries: Sequence[Query], last_batch: int) -> Query:
    """The query that ran last: a note is older than the first micro-batch of its query, of which
    there need be none."""
    ends = [*(one.after_batch for one in queries[1:]), last_batch]
    ran = [one for one, end in zip(queries, ends, strict=True) if end > one.after_batch]
    return ran[-1] if ran else queries[0]


def after_instead(
    programs: Iterable[Asked],
    given_by: Callable[[int], int],
    known: Known,
    checkpoint: str,
    mixes: bool,
) -> str:
    """What to do for queries that cannot go on with a checkpoint.

    given_by: as of `Needs`. mixes: whether some rows wait for an absence at their end, and others
    do not.
    """
    if known.begun_batch > known.last_batch:
        return (
            f"Its stream was stopped within micro-batch {known.begun_batch}: start it once more "
            "with the query that it was begun with (trigger(availableNow=True)), and ask again"
        )
    for program in programs:
        reason = why_not(program, Route.AFTER)
        if reason is not None:
            return (
                f"And query {program.name!r} cannot begin in the midst of a stream: {reason.why}. "
                f"Go on with the query that {checkpoint} was begun with; or end that stream "
                "(availableNow, then celc_runtime.finish) and begin a new checkpoint"
            )
    if known.watermark is None:
        return "No row has been returned yet: begin a new checkpoint"
    last = given_by(known.watermark)
    told = (
        f"Begin a new checkpoint with after={shown_bound(last, 'TIMESTAMP')!r}: all rows that are "
        "known by then have been returned, so none is lost and none comes twice"
    )
    if mixes:
        told += (
            " (but for rows that wait for no absence and end at "
            f"{shown_bound(known.watermark, 'TIMESTAMP')}, which come twice)"
        )
    return f"{told}; or go on with the query that the checkpoint was begun with"


def rows_since(program: Program, since: int | None) -> Callable[[DataFrame], DataFrame] | None:
    """What passes on the rows that are known after a time (microseconds); None: all are."""
    if since is None:
        return None
    from celc_runtime.spark.slices import rows_of

    return partial(rows_of, Slice(program, known_of(program), since, None))


@contextmanager
def telling_way_out(
    programs: Sequence[Asked], events: DataFrame, checkpoint: str | None
) -> Iterator[None]:
    """Adds to the error of a checkpoint with other queries from when on a new checkpoint goes on:
    on routes on which a query goes on only as it was."""
    try:
        yield
    except OtherQuery as problem:
        if checkpoint is None:
            raise
        told = way_out(programs, events.sparkSession, checkpoint)
        raise StateError(f"{problem}. {told}") from None


def way_out(programs: Sequence[Asked], spark: SparkSession, checkpoint: str) -> str:
    """What to do with a checkpoint that has completed a micro-batch, where queries cannot go on
    with it."""
    last, begun, watermark = _progress(spark, checkpoint) or (0, 0, None)
    late = any(map(_is_late, programs))
    known = Known((), (), last, begun, watermark)
    return after_instead(programs, lambda time: time - late, known, checkpoint, late)


def _is_late(program: Asked) -> bool:
    if not isinstance(program, Program):
        return False
    return bool(program.plan.choice.deadlines) or any(map(_is_late, program.levels))


# --- notes ----------------------------------------------------------------------------------------


def _notes(spark: SparkSession, checkpoint: str) -> list[Query]:
    folder = posixpath.join(checkpoint, _NOTES)
    if not files_in(spark, folder):
        return []
    told = [json.loads(row[0]) for row in spark.read.text(folder).collect()]
    return [
        Query(bytes.fromhex(one["query"]), bytes.fromhex(one["needs"]), one["after"], one["since"])
        for one in sorted(told, key=lambda one: one["number"])
    ]


def _note(spark: SparkSession, checkpoint: str, queries: Sequence[Query], first: int) -> None:
    rows: list[tuple[str]] = []
    for number, one in enumerate(queries[first:], first):
        told: dict[str, Any] = {
            "number": number,
            "query": one.identity.hex(),
            "needs": one.record.hex(),
            "after": one.after_batch,
            "since": one.since,
        }
        rows.append((json.dumps(told),))
    noted = spark.createDataFrame(rows, "value STRING").coalesce(1)
    noted.write.mode("append").text(posixpath.join(checkpoint, _NOTES))
