"""What a comparison of two queries can find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from celc_runtime.plan.frozen import frozen

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class Bound:
    """How far streams were searched.

    `length`: all streams of up to so many events, over the values, have been tried; 0: not even all
    of one event. `tried`: how many streams, also longer ones. `values`: for each attribute whose
    values were chosen, these as texts. `times`: the steps of time between events, as texts.
    `ended`: why the search went no further.
    """

    length: int
    tried: int
    values: Mapping[str, tuple[str, ...]]
    times: tuple[str, ...]
    ended: str


@frozen
class Equal:
    """Both queries have the same answers on every stream; `proof` says in a sentence why."""

    proof: str


@frozen
class Difference:
    """A stream on which the answers differ. Both queries have been run on it.

    `events`: the stream, as `match_table` takes it. `old`, `new`: the answers, as `match_table`
    gives them, with `at_end="closed"`. `parameters`: of queries FOR EACH, the table of each set.
    `shortest`: whether no shorter stream shows a difference; `bound`: over which values that is
    said, None: over all. Where `shortest` is False, every stream with one event less that was tried
    shows none.
    """

    events: pa.Table
    old: pa.Table
    new: pa.Table
    parameters: Mapping[str, pa.Table] = field(default_factory=dict)
    shortest: bool = False
    bound: Bound | None = None


@frozen
class Unknown:
    """No difference was found, and no proof; `bound` says where it was looked for, and `why` what
    stands in the way of a proof."""

    bound: Bound
    why: str
