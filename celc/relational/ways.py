"""The ways to choose an operand of each OR, and a number of rounds where there can be several."""


class Ways:
    """Which operand of each OR and which number of rounds is taken, until each way was."""

    def __init__(self) -> None:
        self._taken: list[int] = []
        self._sizes: list[int] = []
        self._next = 0

    def choose(self, size: int) -> int:
        """The way that is taken at the next place, which has `size` ways."""
        if self._next == len(self._taken):
            self._taken.append(0)
            self._sizes.append(size)
        self._next += 1
        return self._taken[self._next - 1]

    def advance(self) -> bool:
        """Begin anew on another way; False: each was taken."""
        while self._taken and self._taken[-1] + 1 == self._sizes[-1]:
            del self._taken[-1], self._sizes[-1]
        if not self._taken:
            return False
        self._taken[-1] += 1
        self._next = 0
        return True
