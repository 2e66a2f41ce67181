"""The queries of the repository, for tests of what editors ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from places import CASES, ROOT

Query = tuple[str, str, str]
"""Where a query is from, its dialect, its text."""


def queries_of_the_repository() -> Iterator[Query]:
    """All queries of the cases, the generated modules, the examples and the documents."""
    for path in sorted(CASES.glob("*/*.jsonl")):
        dialect = "match_recognize" if path.parent.name == "sql" else "cel"
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            yield case["name"], dialect, case["query"]
    for folder in ("generated", "examples"):
        for path in sorted((ROOT / folder).rglob("*.cel")):
            yield path.relative_to(ROOT).as_posix(), "cel", path.read_text("utf-8")
        for path in sorted((ROOT / folder).rglob("*.sql")):
            if "MATCH_RECOGNIZE" in path.read_text("utf-8"):
                yield path.relative_to(ROOT).as_posix(), "match_recognize", path.read_text("utf-8")
    for path in sorted((ROOT / "docs").glob("*.md")):
        blocks = re.findall(r"^```(cel|sql)\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
        for number, (language, text) in enumerate(blocks):
            if language == "cel" or "MATCH_RECOGNIZE" in text:
                dialect = "cel" if language == "cel" else "match_recognize"
                yield f"{path.name}/{number}", dialect, text
