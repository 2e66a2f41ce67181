"""The side of pycer: it needs that alone, and the Python that pycer is for.

It greets with `ready`, and answers each line by one:

    load PATH DECLARATION   "loaded": the events of a file, the type first, are those of a stream
    query TEXT              the number of rows
    write PATH              "written": the rows of the last query, ids of their events with commas
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

_EVENT = re.compile(r"attributes: \[(\d+) ")


def rows_of(printed: str) -> list[str]:
    """The ids of the events of each row that pycer has printed, with commas between.

    A row is a line as `[0,3], ((id: 0 attributes: [17 1700 4 250 ]) (id: 1 attributes: [20 …]) )`.
    """
    found = (_EVENT.findall(line) for line in printed.splitlines())
    return [",".join(ids) for ids in found if ids]


class Stream:
    """The events of a stream, and the rows of the last query."""

    def __init__(self, path: str, declaration: str) -> None:
        import pycer

        self._declaration = declaration
        kinds = pycer.PyOfflineServer().declare_stream(declaration).events_info
        makers = {
            pycer.INT64: lambda text: pycer.PyIntValue(int(text)),
            pycer.DOUBLE: lambda text: pycer.PyDoubleValue(float(text)),
            pycer.STRING_VIEW: pycer.PyStringValue,
        }
        of = {
            kind.name: (kind.id, [makers[each.value_type] for each in kind.attributes_info])
            for kind in kinds
        }
        self._events: list[Any] = []
        with Path(path).open(encoding="utf-8") as lines:
            for line in lines:
                letter, *fields = line.rstrip("\n").split(",")
                number, make = of[letter]
                values = [one(text) for one, text in zip(make, fields, strict=True)]
                self._events.append(pycer.PyEvent(number, values))
        self.rows: list[str] = []

    def query(self, text: str) -> int:
        """Answer a query; returns the number of rows."""
        import pycer

        server = pycer.PyOfflineServer()
        server.declare_stream(self._declaration)
        server.add_query(text)
        server.send_events(self._events)
        self.rows = rows_of(server.get_output())
        return len(self.rows)


def main() -> None:
    print("ready", flush=True)
    stream: Stream | None = None
    for line in sys.stdin:
        word, rest = line.rstrip("\n").split(" ", 1)
        try:
            if word == "load":
                stream = Stream(*rest.split(" ", 1))
                answer = "loaded"
            elif stream is None:
                answer = "error: no events are loaded"
            elif word == "query":
                answer = str(stream.query(rest))
            else:
                Path(rest).write_text("".join(f"{row}\n" for row in stream.rows), "utf-8")
                answer = "written"
        except Exception as error:  # the other side raises it again
            answer = " ".join(f"error {type(error).__name__}: {error}".split())
        print(answer, flush=True)


if __name__ == "__main__":
    main()
