"""How much memory this process has."""

import mmap
from pathlib import Path


def resident() -> int:
    """Bytes of this process in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
