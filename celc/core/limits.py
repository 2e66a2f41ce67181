"""Limits that a caller can change, and their defaults. Only constants: `import celc` and the first
steps of a process need no other part of celc for them."""

DEFAULT_MAX_STATES = 2000  # states that are made beforehand
DEFAULT_MAX_WORK = 100_000_000
MOST_MAX_WORK = 2**63 - 1
"""The largest number that the runtime can count. The runtime has it too (`celc_runtime.query`),
because neither package imports the other. A test compares the two, and their messages."""

# a value of the option `ties`: events that are equal in all order columns are one instant
SIMULTANEOUS = "simultaneous"
