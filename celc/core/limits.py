"""Limits that a caller can change, and their defaults.

Constants alone: `import celc` and the first steps of a process need them, and nothing else of celc.
"""

DEFAULT_MAX_STATES = 2000
DEFAULT_MAX_WORK = 100_000_000
MOST_MAX_WORK = 2**63 - 1
"""The largest number that the runtime can count. The runtime has it too (`celc_runtime.query`),
since neither package imports the other to start with; a test compares the two, and their
messages."""

SIMULTANEOUS = "simultaneous"
"""The value of the option `ties`: events that are equal in all order columns are one instant."""
