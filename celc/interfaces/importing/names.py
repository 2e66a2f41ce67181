"""Names of queries for the titles of rules, and of event types for their log sources."""

import re


def query_name(text: str) -> str:
    """A name for any text: its words in small letters, joined by `_`."""
    name = "_".join(re.findall(r"[^\W_]+", text)).lower() or "rule"
    return f"rule_{name}" if name[0].isdigit() else name
