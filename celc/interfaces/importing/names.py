"""Names of queries for the titles of rules, and of event types for their log sources."""

import re
from collections.abc import Collection


def query_name(text: str) -> str:
    """A name for any text: its words in small letters, joined by `_`."""
    name = "_".join(re.findall(r"[^\W_]+", text)).lower() or "rule"
    return f"rule_{name}" if name[0].isdigit() else name


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that none of `taken` is called like, up to case."""
    known = {one.lower() for one in taken}
    while name.lower() in known:
        name += "_"
    return name
