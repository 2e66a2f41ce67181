"""The languages whose rules are read: their files, and the columns of their events."""

from celc_runtime.plan.frozen import frozen


@frozen
class Columns:
    """The columns with the time and the kind of an event: its category, or its log source."""

    time: str
    kind: str


SUFFIXES = {"eql": (".eql", ".toml"), "sigma": (".yml", ".yaml"), "flink": (".json",)}
"""The endings of files in a folder."""

COLUMNS = {
    "eql": Columns("@timestamp", "event.category"),
    "sigma": Columns("timestamp", "logsource"),
    "flink": Columns("ts", "type"),
}
"""The columns where no others are named."""
