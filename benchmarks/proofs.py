"""What `celc prove` costs for each example and each recipe: CPU seconds of the whole command.

    python benchmarks/proofs.py [--only WORD] [--record]

Each file is proved by a process of its own, so a figure has the imports in it (Z3, Numba, Arrow),
with what they keep at hand. `import` is a process that imports the same and proves nothing. The
worst is printed last.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import environment

_ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"<!-- file: (\S+\.cel) -->\n```cel\n(.*?)```", re.DOTALL)
_IMPORTS = "import celc.driver.proving, celc.interfaces.cli.command, z3"


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The names and paths of all examples and recipes; recipes are written into a folder."""
    for path in sorted((_ROOT / "examples").rglob("*.cel")):
        yield str(path.relative_to(_ROOT / "examples")), path
    for page in sorted((_ROOT / "docs" / "recipes").glob("*.md")):
        for name, text in _BLOCK.findall(page.read_text()):
            (folder / page.stem).mkdir(exist_ok=True)
            (folder / page.stem / name).write_text(text)
            yield f"{page.stem}/{name}", folder / page.stem / name


def seconds(*arguments: str) -> tuple[float, int]:
    """(CPU seconds of a Python process, its exit code)."""
    before = os.times()
    found = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system, found.returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    record = environment("benchmarks/proofs.py", 0)
    seconds("-c", _IMPORTS)
    figures = {"import": round(seconds("-c", _IMPORTS)[0], 2)}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files(Path(folder)):
            if given.only in name:
                spent, code = seconds("-m", "celc", "prove", str(path))
                figures[name] = round(spent, 2)
                print(f"{spent:6.2f}  {name}" + (f"  exit {code}" if code else ""), flush=True)
    worst = max(figures, key=figures.__getitem__)
    print(f"{figures[worst]:6.2f}  {worst} is the worst of {len(figures) - 1}")
    if given.record:
        with (_ROOT / "benchmarks" / "records" / f"proofs-{record['date']}.jsonl").open("a") as out:
            out.write(json.dumps(record | {"seconds": figures}) + "\n")
