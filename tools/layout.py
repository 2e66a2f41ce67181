"""Check that files of Python are laid out as black does it; black itself reads few of them.

    python tools/layout.py

Both formatters have one style, but for rare expressions, and ruff needs a hundredth of the time:
0.8 s for 300,000 lines, where black needs 83 s of CPU. So ruff reads all files, and black those
that ruff would change: one in forty. A file in the style of either passes. `make long` has black
read all.

`generated` is in neither: black makes these files, and tests compare them byte by byte.
"""

from __future__ import annotations

import re
import subprocess
import sys


def main() -> int:
    """The exit code of black, which says what it would change; 2 where ruff could not read."""
    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--output-format", "concise", "."]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    named = set(re.findall(r"^(.*):\d+:\d+: unformatted: ", done.stdout, re.M))
    # 0: all are fine; 1: some are not. Without a name for these the answer was not understood.
    if done.returncode > 1 or bool(named) != bool(done.returncode):
        print(done.stdout + done.stderr, file=sys.stderr)
        return 2
    # Ruff also reads blocks of Python in documents, which black does not.
    changed = sorted(name for name in named if name.endswith((".py", ".pyi")))
    if not changed:
        return 0
    black = [sys.executable, "-m", "black", "--check"]
    if subprocess.run([*black, "--quiet", *changed], check=False).returncode == 0:
        return 0
    return subprocess.run([*black, *changed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
