"""Memory of arrays that are freed is there for the next call."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_ROUNDS = """
import resource
import numpy as np
{first}

def faults():
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(3 << 20, np.uint8) for _ in range(6)]
    del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun

print([faults() for _ in range(4)][-1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep other limits")
def test_a_process_touches_no_new_pages_for_the_same_arrays_again() -> None:
    def faults(first: str) -> int:
        program = [sys.executable, "-c", _ROUNDS.format(first=first)]
        return int(subprocess.run(program, capture_output=True, check=True, text=True).stdout)

    pages = 6 * (3 << 20) // 4096
    assert faults("") > pages // 8  # what the process does by itself
    assert faults("import celc_runtime.run.run_of") < pages // 100
