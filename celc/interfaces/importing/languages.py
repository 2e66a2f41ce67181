"""The languages whose rules are read: their files, the columns of their events, what is made."""

from celc_runtime.plan.frozen import frozen


@frozen
class Columns:
    """The columns with the time and the kind of an event: its category, or its log source."""

    time: str
    kind: str


@frozen
class Translated:
    """The text of a file of CEL; that of a test file with the examples of its rules, or None; and
    what of these is not read."""

    text: str
    tests: str | None = None
    warnings: str = ""


SUFFIXES = {"eql": (".eql", ".toml"), "sigma": (".yml", ".yaml"), "flink": (".json",)}
"""The endings of files in a folder."""

COLUMNS = {
    "eql": Columns("@timestamp", "event.category"),
    "sigma": Columns("timestamp", "logsource"),
    "flink": Columns("ts", "type"),
}
"""The columns where no others are named."""
