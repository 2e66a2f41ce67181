"""Sets of events of uncertain time that a definition judges: how likely they are.

What a definition says of some events depends on their *order* alone: who comes before whom, and who
comes together (if a part has a window: how far apart they are). So it is asked once for each order.
Its answers stand in a table, and the worlds are added up here. An order that is not in the table
yet becomes an *ask*: the pass over the sets goes on without it, and is repeated for the sets that
lack something when all asks are answered.

Where each event that must be absent rules a match out by itself, these events are independent of
each other in a world of the match's events. Then the answer for such an event and an order is:
where may it come, before the first instant of the match's events, in it, between it and the next
one, and so on. So the worlds of these events are not multiplied.

Rejected: a table for each kind of match, with the worlds gone through in Python (ten to twenty
times slower). Not tried: a sweep over the sorted points in place of the product of the points of a
match. Few events of a match overlap, so the product is short.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.key_tables import hash_of_two
from celc_runtime.engine.worlds.possible_matches import slot_of
from celc_runtime.engine.worlds.possible_orders import share_of
from celc_runtime.jit.kernels import njit

UNKNOWN, REFUSED, ADMITTED = -1, 0, 1
"""Answers about an order; about another event: where its places begin in `Answers.places`."""
MATCH = -1
"""In place of another event: the ask is about the match itself."""


class Answers(NamedTuple):
    """A table of orders, by 128 bits of hash."""

    slots: np.ndarray  # int64[size], a power of two; −1: free, else 0
    keys: np.ndarray  # int64[size, 2]
    values: np.ndarray  # int64[size]
    places: np.ndarray  # bool, the places of other events, order by order
    used: np.ndarray  # int64[1], the number of orders


class Asks(NamedTuple):
    """Orders that are asked about."""

    slots: np.ndarray  # int64[asks], in `Answers`
    sets: np.ndarray  # int64[asks], the set
    others: np.ndarray  # int64[asks], another event, or MATCH
    times: np.ndarray  # int64[asks, most], the times of the events of the set, then anything
    used: np.ndarray  # int64[1], the number of asks


@njit(nogil=True, cache=True)
def _overlaps(events, event, told, begin, stop):  # type: ignore[no-untyped-def]
    """Whether an event has times in common with another one of some."""
    low, last = events.low[event], events.last[event]
    for place in range(begin, stop):
        other = told[place]
        if other != event and events.low[other] <= last and events.last[other] >= low:
            return True
    return False


@njit(nogil=True, cache=True)
def points_of(number, judged, events, asked):  # type: ignore[no-untyped-def]
    """(int64[told], the points of each event that is multiplied with a set; the steps that its
    worlds take, or −1 if there are more than max_work).

    An event that overlaps no other one stands at its first point, unless its time counts.
    """
    begin = judged.told_ends[number - 1] if number else np.int64(0)
    stop = judged.told_ends[number]
    members = judged.ends[number] - (judged.ends[number - 1] if number else 0)
    first = judged.apart_ends[number - 1] if number else np.int64(0)
    others = judged.apart_ends[number] - first
    found, work = np.empty(stop - begin, np.int64), np.int64(stop - begin + others)
    earliest, latest = events.low[judged.told[begin]], events.last[judged.told[begin]]
    for place in range(begin, begin + members):
        event = judged.told[place]
        earliest, latest = min(earliest, events.low[event]), max(latest, events.last[event])
    cuts = 0 <= asked.window < latest - earliest
    for place in range(begin, stop):
        event = judged.told[place]
        counts = asked.measures or (cuts and place < begin + members)
        counts |= _overlaps(events, event, judged.told, begin, stop)
        # An event that is seen with the match alone can be on both sides of one of its events.
        for other in range(first, first + others):
            one = judged.apart[other]
            counts |= (
                events.low[one] <= events.last[event] and events.last[one] >= events.low[event]
            )
        found[place - begin] = events.points[event] if counts else 1
        if work > asked.max_work // found[place - begin]:
            return found, np.int64(-1)
        work *= found[place - begin]
    return found, work


@njit(nogil=True, cache=True)
def steps_of(judged, events, asked):  # type: ignore[no-untyped-def]
    """(The steps that all worlds take; the first set with more than max_work, or −1)."""
    steps = np.int64(0)
    for number in range(judged.ends.shape[0]):
        _, work = points_of(number, judged, events, asked)
        if work < 0:
            return steps, number
        steps += work
    return steps, -1


@njit(nogil=True, cache=True)
def _begun(number, judged, events, asked):  # type: ignore[no-untyped-def]
    """The hash of the events of a set, to which that of an order is joined: two numbers."""
    begin = judged.ends[number - 1] if number else np.int64(0)
    members, kinds = judged.ends[number] - begin, asked.kinds.shape[0] + 1
    told = judged.told_ends[number - 1] if number else np.int64(0)
    one, other = np.int64(members), ~np.int64(members)
    for place in range(told, judged.told_ends[number]):
        event, kind = judged.told[place], np.int64(0)
        if place - told < members:
            tag = judged.tags[begin + place - told]
            kind = 1 + (tag & ((np.int64(1) << asked.bits) - 1))
        letter = (events.symbols[event] if asked.by_symbol else event) * kinds + kind
        one, other = hash_of_two(one, letter), hash_of_two(other, ~letter)
    return one, other


@njit(nogil=True, cache=True)
def _put_order(times, count, order, instants, measures):  # type: ignore[no-untyped-def]
    """Write the order of events, as numbers, and their instants ascending; returns how many."""
    found = 0
    for place in range(count):
        time, at = times[place], found
        while at > 0 and instants[at - 1] > time:
            at -= 1
        if at > 0 and instants[at - 1] == time:
            continue
        for moved in range(found, at, -1):
            instants[moved] = instants[moved - 1]
        instants[at] = time
        found += 1
    for place in range(count):
        if measures:
            order[place] = times[place] - instants[0]
            continue
        rank = 0
        while instants[rank] < times[place]:
            rank += 1
        order[place] = rank
    return found


@njit(nogil=True, cache=True)
def _asked_about(answers, asks, one, other, number, event, times, count):  # type: ignore[no-untyped-def]
    """The answer about an order; UNKNOWN: it is among the asks, or there is no room for it."""
    slot = slot_of(answers.slots, answers.keys, one, other)
    if answers.slots[slot] >= 0:
        return answers.values[slot]
    ask = asks.used[0]
    if ask == asks.slots.shape[0] or 2 * answers.used[0] >= answers.slots.shape[0]:
        return np.int64(UNKNOWN)
    answers.slots[slot], answers.keys[slot, 0], answers.keys[slot, 1] = 0, one, other
    answers.values[slot] = UNKNOWN
    answers.used[0] += 1
    asks.slots[ask], asks.sets[ask], asks.others[ask] = slot, number, event
    for place in range(count):
        asks.times[ask, place] = times[place]
    asks.used[0] += 1
    return np.int64(UNKNOWN)


@njit(nogil=True, cache=True)
def _allowed(events, event, instants, count, places, at, step):  # type: ignore[no-untyped-def]
    """The probability that an event is at an allowed place among instants."""
    found, place = 0.0, 0
    time = events.low[event]
    for point in range(events.points[event]):
        while place < count and instants[place] < time:
            place += 1
        is_in = place < count and instants[place] == time
        if places[at + 2 * place + is_in]:
            found += share_of(events, event, point)
        time += step
    return found


@njit(nogil=True, cache=True)
def _likely(number, judged, events, asked, answers, asks, shares):  # type: ignore[no-untyped-def]
    """Whether all is known of a set. If so, its confidence is written."""
    points, _ = points_of(number, judged, events, asked)
    begin = judged.told_ends[number - 1] if number else np.int64(0)
    count = judged.told_ends[number] - begin
    members = judged.ends[number] - (judged.ends[number - 1] if number else 0)
    first = judged.apart_ends[number - 1] if number else np.int64(0)
    stop = judged.apart_ends[number]
    at, times = np.zeros(count, np.int64), np.empty(count, np.int64)
    order, instants = np.empty(count, np.int64), np.empty(count, np.int64)
    set_one, set_other = _begun(number, judged, events, asked)
    found, is_known, goes_on = 0.0, True, True
    while goes_on:
        share, earliest, latest = 1.0, np.int64(0), np.int64(0)
        for place in range(count):
            event = judged.told[begin + place]
            time = events.low[event] + at[place] * asked.step
            times[place] = time
            if points[place] > 1:
                share *= share_of(events, event, at[place])
            if place < members:
                earliest = time if place == 0 else min(earliest, time)
                latest = time if place == 0 else max(latest, time)
        # The next world.
        goes_on = False
        for place in range(count):
            at[place] += 1
            if at[place] < points[place]:
                goes_on = True
                break
            at[place] = 0
        if share <= 0.0 or 0 <= asked.window < latest - earliest:
            continue
        moments = _put_order(times, count, order, instants, asked.measures)
        one, other = set_one, set_other
        for place in range(count):
            one, other = hash_of_two(one, order[place]), hash_of_two(other, ~order[place])
        answer = _asked_about(answers, asks, one, other, number, MATCH, times, count)
        is_known &= answer != UNKNOWN
        if answer != ADMITTED:
            continue
        for place in range(first, stop):
            event = judged.apart[place]
            letter = events.symbols[event] if asked.by_symbol else event
            answer = _asked_about(
                answers,
                asks,
                hash_of_two(one, letter),
                hash_of_two(other, ~letter),
                number,
                event,
                times,
                count,
            )
            if answer == UNKNOWN:
                is_known = False
                continue
            share *= _allowed(events, event, instants, moments, answers.places, answer, asked.step)
            if share <= 0.0:
                break
        found += share
    if is_known:
        shares[number] = found
    return is_known


@njit(nogil=True, cache=True)
def add_worlds(judged, events, asked, answers, asks, shares):  # type: ignore[no-untyped-def]
    """Write the confidence of each set whose `shares` is negative, where all is known of it.

    Returns whether that is so of every set. If not, the asks must be answered, and if the table is
    half full, it must grow first.
    """
    is_done = True
    for number in range(judged.ends.shape[0]):
        if shares[number] < 0.0:
            is_done &= _likely(number, judged, events, asked, answers, asks, shares)
    return is_done


@njit(nogil=True, cache=True)
def copy_answers(answers, larger):  # type: ignore[no-untyped-def]
    """Write all answers into a larger table, which is empty."""
    for slot in range(answers.slots.shape[0]):
        if answers.slots[slot] >= 0:
            one, other = answers.keys[slot, 0], answers.keys[slot, 1]
            into = slot_of(larger.slots, larger.keys, one, other)
            larger.slots[into], larger.keys[into, 0], larger.keys[into, 1] = 0, one, other
            larger.values[into] = answers.values[slot]
    larger.used[0] = answers.used[0]
