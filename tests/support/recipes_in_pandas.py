"""The recipes of docs/recipes by hand: what each of them asks, in pandas and plain Python.

Each function is written from the sentences of its recipe, not from its query, and knows nothing of
celc. It takes the table of the stream, sorted by `ts` (no two events of one key have the same
time), and gives the rows of the answer: all columns but the positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

Row = dict[str, Any]


def parts(events: pd.DataFrame, key: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The events of each key, in the order of time, numbered from 0."""
    for value, part in events.groupby(key, sort=False):
        yield value, part.reset_index(drop=True)


def span(start: pd.Timestamp, end: pd.Timestamp) -> Row:
    return {"start_time": start, "end_time": end}


def silences(
    events: pd.DataFrame, key: str, of: str, ended_by: set[str], length: pd.Timedelta
) -> Iterator[tuple[Any, Any]]:
    """Each event `of` that type after which none of `ended_by` comes for that long, and its key."""
    for value, part in parts(events, key):
        rows = list(part.itertuples())
        for number, event in enumerate(rows):
            until = [one for one in rows[number + 1 :] if one.ts <= event.ts + length]
            if event.type == of and not any(one.type in ended_by for one in until):
                yield value, event


# --- one function for each recipe -----------------------------------------------------------------


def carts(events: pd.DataFrame) -> list[Row]:
    length = pd.Timedelta(minutes=30)
    return [
        {
            "customer": customer,
            **span(event.ts, event.ts),
            "decided_time": event.ts + length,
            "last_item": event.item,
        }
        for customer, event in silences(events, "customer", "Added", {"Added", "Purchased"}, length)
        if event.ts + length < events["ts"].max()
    ]


def tickets(events: pd.DataFrame) -> list[Row]:
    length = pd.Timedelta(hours=4)
    return [
        {
            "ticket": ticket,
            **span(event.ts, event.ts),
            "decided_time": event.ts + length,
            # A missing text is None in pandas 2, and NaN from 3 on.
            "topic": None if pd.isna(event.topic) else event.topic,
        }
        for ticket, event in silences(events, "ticket", "Opened", {"Answered", "Closed"}, length)
    ]


def logins(events: pd.DataFrame) -> list[Row]:
    rows = []
    for account, part in parts(events, "account"):
        failures: list[pd.Timestamp] = []
        for event in part.itertuples():
            if event.type == "Failed":
                failures.append(event.ts)
                continue
            recent = [ts for ts in failures if event.ts - ts <= pd.Timedelta(minutes=10)]
            if len(recent) >= 3:
                found = span(recent[0], event.ts)
                rows.append({"account": account, **found, "failures": len(recent)})
            failures = []
    return rows


def returns(events: pd.DataFrame) -> list[Row]:
    times = events[events["type"] == "Login"].copy()
    quiet = times.groupby("account")["ts"].diff()
    back = times[quiet.isna() | (quiet > pd.Timedelta(days=30))]
    return [{"account": one.account, **span(one.ts, one.ts)} for one in back.itertuples()]


def prices(events: pd.DataFrame) -> list[Row]:
    rows = []
    for name, part in parts(events, "name"):
        price, ts = list(part["price"]), list(part["ts"])
        top = 0
        while top < len(price):
            low = top
            while low + 1 < len(price) and price[low + 1] < price[low]:
                low += 1
            end = low
            while end + 1 < len(price) and price[end + 1] > price[end]:
                end += 1
            if top < low < end:
                values = {"high": price[top], "low": price[low], "recovered": price[end]}
                rows.append({"name": name, **span(ts[top], ts[end]), **values})
            # Where a rise ends the next fall can begin.
            top = max(end, top + 1)
    return rows


def bursts(events: pd.DataFrame) -> list[Row]:
    rows = []
    errors = events[events["type"] == "Error"]
    for host, part in parts(errors, "host"):
        burst = (part["ts"].diff() > pd.Timedelta(seconds=5)).cumsum()
        for _, found in part.groupby(burst):
            if len(found) >= 3:
                values = {"errors": len(found), "worst": int(found["code"].max())}
                rows.append({"host": host, **span(found["ts"].min(), found["ts"].max()), **values})
    return rows


def sessions(events: pd.DataFrame) -> list[Row]:
    rows = []
    for visitor, part in parts(events, "visitor"):
        session = (part["ts"].diff() > pd.Timedelta(minutes=30)).cumsum()
        for _, found in part.groupby(session):
            first, last = found.iloc[0], found.iloc[-1]
            pages = {"first_page": first["page"], "last_page": last["page"]}
            found_span = span(first["ts"], last["ts"])
            rows.append({"visitor": visitor, **found_span, "events": len(found), **pages})
    return rows


def steps(events: pd.DataFrame) -> list[Row]:
    rows = []
    allowed, clock = pd.Timedelta(hours=4), events["ts"].max()
    for parcel, part in parts(events, "id"):
        at = dict(zip(part["type"], part["ts"], strict=True))
        packed, checked, shipped = (at.get(step) for step in ("Packed", "Checked", "Shipped"))
        if packed is None or shipped is None or shipped < packed:
            continue
        if checked is not None and packed < checked < shipped:
            continue
        late = checked is not None and shipped < checked <= shipped + allowed
        if late:
            times = {**span(packed, checked), "decided_time": checked, "checked": checked}
        elif shipped + allowed < clock:
            decided = shipped + allowed
            times = {**span(packed, shipped), "decided_time": decided, "checked": None}
        else:
            continue
        rows.append({"id": parcel, **times, "shipped": shipped})
    return rows


def changes(events: pd.DataFrame) -> list[Row]:
    rows = []
    for account, part in parts(events, "account"):
        all_changes = list(part.itertuples())
        for number, first in enumerate(all_changes):
            others = (one for one in all_changes[number + 1 :] if one.type != first.type)
            other = next(others, None)
            if other is None or other.ts - first.ts > pd.Timedelta(hours=1):
                continue
            at = {first.type: first.ts, other.type: other.ts}
            values = {"password_at": at["PasswordChanged"], "address_at": at["AddressChanged"]}
            rows.append({"account": account, **span(first.ts, other.ts), **values})
    return rows


def heartbeats(events: pd.DataFrame) -> list[Row]:
    length = pd.Timedelta(minutes=2)
    beats = events.assign(type="Beat")
    return [
        {"device": device, **span(beat.ts, beat.ts), "decided_time": beat.ts + length}
        for device, beat in silences(beats, "device", "Beat", {"Beat"}, length)
        if beat.ts + length < events["ts"].max()
    ]


def cards(events: pd.DataFrame) -> list[Row]:
    rows = []
    for card, part in parts(events, "card"):
        pairs = zip(part.itertuples(), part[1:].itertuples(), strict=False)
        for before, after in pairs:
            near = after.ts - before.ts <= pd.Timedelta(minutes=30)
            if before.city != after.city and near:
                cities = {"from_city": before.city, "to_city": after.city}
                rows.append({"card": card, **span(before.ts, after.ts), **cities})
    return rows
