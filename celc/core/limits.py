"""Limits that a caller can change, and what they are otherwise.

Constants alone: `import celc` and the first steps of a process need them, and nothing else of celc.
"""

DEFAULT_MAX_STATES = 2000
DEFAULT_MAX_WORK = 100_000_000
MOST_MAX_WORK = 2**63 - 1
"""What the runtime can count. It has the number too (`celc_runtime.query`), since neither package
imports the other to start with; a test says that they agree, and their messages."""
