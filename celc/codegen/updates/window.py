"""WITHIN → the lines of an update that set the key of an event, and the earliest key inside its
window."""

import math
from typing import Literal

from celc_runtime.plan.frozen import frozen

from celc.codegen.text.imports import Imports
from celc.core.formula import DataType, Query, WindowUnit
from celc.core.traversal import is_one_event

WindowMode = Literal["NO_WINDOW", "EVENTS", "KEYS", "FLOORS"]
"""Keys are positions (EVENTS), whole numbers (KEYS), or other values (FLOORS). For FLOORS the
earliest key is found before the update."""


@frozen
class WindowCode:
    """The window of an update. `latest` is an expression for the last key that is inside the window
    together with `earliest`."""

    mode: WindowMode
    size: int
    latest: str

    def key_lines(self, imports: Imports, *, passing: str) -> tuple[str, ...]:
        """Lines that set `key` and `earliest` for the event in `row`; `passing` is the statement
        that skips the event."""
        match self.mode:
            case "NO_WINDOW":
                return ("key = row - shift",)
            case "EVENTS":
                if self.size == 0:
                    return ("key = earliest = row - shift",)
                return ("key = row - shift", f"earliest = key - {self.size}")
            case "KEYS":
                floor = imports.call("window_floor", "key", str(self.size))
                return ("key = batch.keys[row]", f"earliest = {floor}")
            case "FLOORS":
                return (
                    "key, earliest = batch.keys[row], batch.floors[row]",
                    "if key < earliest:  # an infinite key: outside of every window, even its own",
                    f"    {passing}",
                    "    continue",
                )


def window_code(query: Query) -> WindowCode:
    """The window of a query, or one that its matches fit into in any case.

    Matches of one event do not reach back to another, so their nodes are free again once they are
    listed. A match of a whole instant does.
    """
    window = query.window
    if window is None and is_one_event(query.formula) and not query.simultaneous:
        return WindowCode("EVENTS", 0, "earliest")
    if window is None:
        return WindowCode("NO_WINDOW", 0, "earliest")
    if window.unit is WindowUnit.EVENTS:
        size = int(window.size)
        return WindowCode("EVENTS", size, f"earliest + {size}" if size else "earliest")
    attribute = window.attribute or query.order_by[0]
    if attribute.type in (DataType.FLOAT, DataType.DOUBLE):
        return WindowCode("FLOORS", 0, str(2**63 - 1))
    # Between whole numbers, a size with a fraction admits the same events as without it.
    size = math.floor(window.size)
    return WindowCode("KEYS", size, f"earliest + {size}")
