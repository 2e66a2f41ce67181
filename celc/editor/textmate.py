"""The TextMate grammars in `grammars/`, which VS Code, Sublime Text and code hosts read. This
module writes the files, with the words of the parsers' grammars. A test compares both."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from celc.editor.colours import words_by_class
from celc.editor.languages import LANGUAGES, Dialect

FOLDER = Path(__file__).with_name("grammars")
_SCOPES = {
    "constant": "constant.language",
    "operator": "keyword.operator.word",
    "type": "storage.type",
    "keyword": "keyword.control",
}
_ENDINGS: dict[Dialect, list[str]] = {"cel": ["cel"], "match_recognize": []}


def grammar_path(dialect: Dialect) -> Path:
    """The file of a grammar."""
    return FOLDER / f"{dialect}.tmLanguage.json"


def grammar_text(dialect: Dialect) -> str:
    """The text of a grammar."""
    return json.dumps(_grammar(dialect), indent=2) + "\n"


def _grammar(dialect: Dialect) -> dict[str, Any]:
    words = words_by_class(dialect)
    suffix = "celc" if dialect == "cel" else "match-recognize"
    patterns: list[dict[str, Any]] = [
        _match("comment.line.double-dash", r"--.*$"),
        _between("comment.block", r"/\*", r"\*/"),
        _between("string.quoted.single", "'", "'", [_match("constant.character.escape", "''")]),
        _between("variable.other.quoted", "`", "`", [_match("constant.character.escape", "``")]),
        _match("variable.other.member", r"(?<=[^.]\.)\s*[A-Za-z_]\w*"),
        _match("constant.numeric", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b"),
        _match("support.function", rf"(?i)\b(?:{_any(words['function'])})(?=\()"),
        _match("keyword.other.unit", rf"(?i)(?:(?<=\d\s)|(?<=\d'\s))(?:{_any(words['unit'])})\b"),
    ]
    # A DATE before a text is a keyword, otherwise a type.
    for name in ("constant", "operator", "type", "keyword"):
        ending = r"\b(?!\s*')" if name == "type" else r"\b"
        patterns.append(_match(_SCOPES[name], rf"(?i)\b(?:{_any(words[name])}){ending}"))
    patterns.append(_match("keyword.operator", r"->|:\+|<>|!=|<=|>=|==|\.\.|[-+*/%=<>!?|^$:;]"))
    for pattern in patterns:
        pattern["name"] = f"{pattern['name']}.{suffix}"
    return {
        "name": f"{LANGUAGES[dialect].title} (celc)",
        "scopeName": f"source.{suffix}",
        "fileTypes": _ENDINGS[dialect],
        "patterns": patterns,
    }


def _match(name: str, pattern: str) -> dict[str, Any]:
    return {"name": name, "match": pattern}


def _between(
    name: str, begin: str, end: str, inside: Iterable[dict[str, Any]] = ()
) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "begin": begin, "end": end}
    return found | ({"patterns": list(inside)} if inside else {})


def _any(words: Iterable[str]) -> str:
    """The alternatives; of words with one beginning the longer one comes first."""
    return "|".join(sorted(words, reverse=True))
