"""What `celc prove` costs for each example and each recipe: CPU seconds of the whole command.

    python benchmarks/proofs.py [--only WORD] [--times N] [--record]

Each file is proved by a process of its own, so a figure has the imports in it (Z3, Arrow), with
what they keep at hand: bytecode is kept, as where celc is installed. A figure is the least of N
processes, in turns with all others. `import` is a process that imports the same and proves nothing.
The worst is printed last. `--record` adds a line to the records, and writes the table of
docs/proofs.md anew.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common import environment

_ROOT = Path(__file__).parent.parent
_PAGE = _ROOT / "docs" / "proofs.md"
_BLOCK = re.compile(r"<!-- file: (\S+\.cel) -->\n```cel\n(.*?)```", re.DOTALL)
_ROWS = re.compile(r"```sql\n((?:(?!```).)*MATCH_RECOGNIZE.*?)```", re.DOTALL)
_COLUMN = re.compile(r"(\w+): (\w+)")
_TABLE = re.compile(r"(<!-- by benchmarks/proofs.py -->\n).*(<!-- end -->\n)", re.DOTALL)
_IMPORTS = "import celc.driver.proving, celc.interfaces.cli.command, z3"
_IMPORT = "import"


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The names and paths of all examples and recipes; recipes are written into a folder."""
    for path in sorted((_ROOT / "examples").rglob("*.cel")):
        yield f"examples/{path.relative_to(_ROOT / 'examples')}", path
    for page in sorted((_ROOT / "docs" / "recipes").glob("*.md")):
        text = page.read_text()
        of_page: dict[str, str] = dict(_BLOCK.findall(text))
        of_page |= {f"rows_{n}.sql": one for n, one in enumerate(_with_tables(text), 1)}
        for name, one in of_page.items():
            (folder / page.stem).mkdir(exist_ok=True)
            (folder / page.stem / name).write_text(one)
            yield f"recipes/{page.stem}/{name}", folder / page.stem / name


def _with_tables(page: str) -> Iterator[str]:
    """The statements with MATCH_RECOGNIZE of a page, behind the columns of the stream of its first
    query."""
    streams = [one[: one.index("\n}")] for _, one in _BLOCK.findall(page)]
    for statement in _ROWS.findall(page):
        columns = {"type": "STRING", **dict(_COLUMN.findall(streams[0]))}
        told = ", ".join(
            f"{name} {'TIMESTAMP' if type_ == 'PRIMARY_TIME' else type_}"
            for name, type_ in columns.items()
        )
        table = re.search(r"FROM (\w+)", statement)
        assert table is not None
        yield f"CREATE TABLE {table[1]} ({told});\n{statement}"


def seconds(kept: Path, *arguments: str) -> tuple[float, int]:
    """(CPU seconds of a Python process, its exit code); bytecode is kept in a folder."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    found = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env | {"PYTHONPYCACHEPREFIX": str(kept)},
    )
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system, found.returncode


def measured(only: str, times: int) -> tuple[dict[str, float], list[str]]:
    """The least CPU seconds of each file whose name has a word in it, and of the imports; and what
    else is to be said. Whole statements around MATCH_RECOGNIZE are no files for `celc prove`."""
    figures: dict[str, float] = {}
    said: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder, kept = Path(name) / "recipes", Path(name) / "bytecode"
        folder.mkdir()
        chosen = [(one, path) for one, path in files(folder) if only in one]
        seconds(kept, "-c", _IMPORTS)
        for turn in range(times):
            spent, _ = seconds(kept, "-c", _IMPORTS)
            figures[_IMPORT] = min(figures.get(_IMPORT, spent), spent)
            for one, path in chosen:
                spent, code = seconds(kept, "-m", "celc", "prove", str(path))
                if code != 2:
                    figures[one] = min(figures.get(one, spent), spent)
                if code and turn == 0:
                    said.append(f"{one}: " + ("a whole statement" if code == 2 else "WRONG"))
                print(f"{turn + 1}: {spent:6.2f}  {one}", flush=True)
    return {one: round(spent, 2) for one, spent in figures.items()}, said


def table(record: Mapping[str, Any]) -> str:
    """The table of docs/proofs.md of a record."""
    figures = {name: spent for name, spent in record["seconds"].items() if name != _IMPORT}
    busy = f", which others used as well (load {record['load']})" if record["load"] > 1 else ""
    lines = [
        f"{len(figures)} files on {record['date']}, {record['cores']} cores of "
        f"{record['machine']}{busy}.",
        f"The imports alone take {record['seconds'][_IMPORT]:.2f} s.",
        "",
        "| file | CPU seconds |",
        "| --- | ---: |",
    ]
    ordered = sorted(figures.items(), key=lambda one: (-one[1], one[0]))
    lines += [f"| `{name}` | {spent:.2f} |" for name, spent in ordered]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    record = environment("benchmarks/proofs.py", 0)
    figures, said = measured(given.only, given.times)
    worst = max(figures, key=figures.__getitem__)
    print(f"{figures[worst]:6.2f}  {worst} is the worst of {len(figures) - 1}")
    print(*said, sep="\n")
    if given.record:
        record["seconds"] = figures
        with (_ROOT / "benchmarks" / "records" / f"proofs-{record['date']}.jsonl").open("a") as out:
            out.write(json.dumps(record) + "\n")
        text, found = _TABLE.subn(lambda one: one[1] + table(record) + one[2], _PAGE.read_text())
        assert found == 1, "docs/proofs.md has one place for the table"
        _PAGE.write_text(text)
