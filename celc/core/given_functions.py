"""Functions of Python that a call gives for what a text declares, as text."""

from hashlib import sha256

from celc_runtime.plan.frozen import frozen


@frozen
class GivenFunction:
    """A function with all that it uses, or why it cannot be copied.

    - `name` is the name that the text declares, `entry` its own name in `source`, which is the text
      of a module of Python.
    - `least` and `most` are the numbers of arguments that it takes; None: any number.
    - `problem` says what cannot be copied, and `hint` what to do; empty: all of it can.
    """

    name: str
    entry: str
    source: str
    least: int = 0
    most: int | None = None
    problem: str = ""
    hint: str = ""

    @property
    def digest(self) -> str:
        """A digest of what it computes."""
        return sha256(f"{self.entry}\n{self.source}".encode()).hexdigest()[:16]
