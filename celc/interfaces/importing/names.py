"""Names of queries for the titles of rules."""

import re


def query_name(text: str) -> str:
    """A name of a query for any text: its words in small letters, joined by `_`."""
    name = "_".join(re.findall(r"[A-Za-z0-9]+", text)).lower() or "rule"
    return f"rule_{name}" if name[0].isdigit() else name
