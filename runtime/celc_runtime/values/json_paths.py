"""Paths into texts of JSON, such as `$.b[0].c`: what Spark reads of them, without `*`."""

import re

Path = tuple[str | int, ...]

_STEP = re.compile(r"\.([^.\[\s][^.\[]*)|\['([^'\s][^']*)'\]|\[([0-9]+)\]")
_MOST_PLACES = 2**31 - 1  # elements: more than any text has


def read_path(text: str) -> Path | None:
    """The names and places of a path such as `$.b[0]['c d']`; None: it is none, or has a `*`."""
    found: list[str | int] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or "*" in step.groups():
            return None
        name, quoted, place = step.groups()
        found.append(min(int(place), _MOST_PLACES) if place else name or quoted)
        at = step.end()
    return tuple(found) if found and text.startswith("$") else None
