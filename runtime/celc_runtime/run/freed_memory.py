"""Memory of arrays that are freed stays with the process, for the arrays of the next call.

The C library of most Linux systems (glibc) gives freed memory back to the system as soon as more
than a limit lies at the end of what it has. The next call then gets it anew, page by page. To touch
a new page takes longer than to fill it, and all threads of a process wait for each other meanwhile:
two threads took as long as one (A ; B of equal values, a million rows: 30 ms, and 20 with this).
The limit starts at 128 KiB. It becomes twice the size of the largest array that has been freed, of
those up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD), so whether calls are slow depends on what else
the process did before.
"""

import numpy as np

_LARGEST = 31 << 20  # bytes: an array of 32 MiB has a few bytes more, and does not count


def keep_freed_memory() -> None:
    """Free one array of the largest size that counts: from now on up to 64 MiB stay with the
    process. No page of it is touched. Elsewhere than with glibc this changes nothing."""
    np.empty(_LARGEST, np.uint8)
