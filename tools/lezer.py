"""Makes the scripts that colour and edit queries in pages: `templates/colours.js` (Lezer alone) and
`templates/editor.js` (CodeMirror, with the same colours).

    python tools/lezer.py     after a change to `celc/parse/grammar.lark` or to tools/lezer/

The grammar of Lezer is made of that of celc, rule by rule, so both read the same texts; what stays
different is listed in `tests/editor/test_lezer.py`. The generator, the libraries and the bundler
come from npm, so this needs node; whoever uses celc does not. The head of each script has a hash of
all files that it was made from, so that a test sees when a script is out of date.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import npm
from lark import Lark
from lark.grammar import Rule
from parser_tables import _vocabulary

import celc.parse.tables
from celc.editor.colours import words_by_class
from celc.parse.durations import UNITS
from celc.parse.tables import START

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "tools" / "lezer"
SCRIPTS = {name: ROOT / "templates" / f"{name}.js" for name in ("colours", "editor")}

_CLASSES = {"constant": "Constant", "operator": "OperatorWord"}
_CALLS = ("call", "distinct_call", "call_of_all", "own_call")
# Rules that leave a node in the tree, because their words have a colour of their own.
_NODES = {"type_name": "TypeName", "cast_name": "CastName"}

# The tokens whose regular expressions Lezer cannot read, written by hand.
_TOKENS = """\
  space { @whitespace+ }
  Comment { "--" ![\\n]* | "/*" inComment }
  inComment { ![*] inComment | "*" afterStar }
  afterStar { "/" | "*" afterStar | ![/*] inComment }
  TEXT[@name=Text] { "'" (!['] | "''")* "'" }
  digits { @digit+ }
  exponent { ("e" | "E") ("+" | "-")? digits }
  DOUBLE[@name=Number] { digits ("." digits exponent? | exponent) }
  INTEGER[@name=Number] { digits }
"""
_SPELLED = ("COMMENT", "SPACE", "TEXT", "DOUBLE", "INTEGER", "NAME")


def made_texts() -> dict[str, str]:
    """The files that are made of celc's grammar, by name."""
    path = celc.parse.tables.TABLES.with_name("grammar.lark")
    lark = Lark(path.read_text(encoding="utf-8"), start=START, maybe_placeholders=False)
    words, patterns = _vocabulary(lark)
    tables = celc.parse.tables.grammar()
    sets = {
        "KEYWORDS": f"new Map({json.dumps(list(words.items()))})",
        "RESERVED": f"new Set({json.dumps(sorted(tables.reserved))})",
        "UNITS": f"new Set({json.dumps(sorted(UNITS))})",
    }
    return {
        "cel.grammar": "\n".join(_grammar(lark.rules, words, patterns)) + "\n",
        "cel.words.js": "".join(f"export const {name} = {of}\n" for name, of in sets.items()),
    }


def _grammar(
    rules: Iterable[Rule], words: dict[str, str], patterns: dict[str, str]
) -> Iterator[str]:
    of = words_by_class("cel")
    classes = {
        word: next((name for one, name in _CLASSES.items() if word in of[one]), "Keyword")
        for word in words
    }
    keywords = " ".join(f"{term}[@name={classes[word]}]" for word, term in words.items())
    yield f"@top File {{ {_name(START)} }}"
    yield "@skip { space | Comment }"
    yield '@external propSource highlighting from "./highlight.js"'
    yield '@external tokens unspelled from "./words.js" { HOLDS[@name=Holds] BEGIN[@name=Begin] }'
    yield f'@external tokens keywords from "./words.js" {{ {keywords} }}'
    names = "UNIT[@name=Unit] ATTRIBUTE[@name=Attribute] NAME[@name=Name]"
    yield f'@external tokens names from "./words.js" {{ {names} }}'
    signs = [name for name in patterns if name not in _SPELLED]
    yield "@tokens {\n" + _TOKENS
    for name in signs:
        kind = "Bracket" if re.search("(?<!COLON_L)(PAR|SQB|BRACE)$", name) else "Operator"
        yield f"  {name}[@name={kind}] {{ {_spellings(patterns[name])} }}"
    yield f"  @precedence {{ Comment, DOUBLE, INTEGER, {', '.join(signs)} }}\n}}"
    yield "FunctionName { NAME }\nOwnFunctionName { ATTRIBUTE }"
    by_name: dict[str, dict[str, None]] = {}
    for rule in rules:
        by_name.setdefault(_name(str(rule.origin.name)), {})[_expansion(rule)] = None
    for name, expansions in by_name.items():
        yield f"{name} {{ {' | '.join(expansions)} }}"


def _spellings(pattern: str) -> str:
    """`(?:==|=)` as `"==" | "="`. Only a bar without a backslash is between two."""
    inner = pattern.removeprefix("(?:").removesuffix(")") if pattern[:3] == "(?:" else pattern
    parts = (re.sub(r"\\(.)", r"\1", one) for one in re.split(r"(?<!\\)\|", inner))
    return " | ".join(map(json.dumps, parts))


def _expansion(rule: Rule) -> str:
    parts = [one.name if one.is_term else _name(one.name) for one in rule.expansion]
    if rule.alias in _CALLS and parts[0] in ("NAME", "ATTRIBUTE"):
        parts[0] = "FunctionName" if parts[0] == "NAME" else "OwnFunctionName"
    return " ".join(map(str, parts)) or '""'


def _name(name: str) -> str:
    """`sum{own_value}` as `sum_own_value_`; a name of Lezer's own grammar never ends so."""
    return _NODES.get(name, re.sub(r"\W+", "_", name).strip("_") + "_")


def hash_of_parts() -> str:
    """A hash of all files that the scripts are made from: 16 hexadecimal digits."""
    found = hashlib.sha256()
    parts = {path.name: path.read_text("utf-8") for path in PARTS.iterdir() if path.is_file()}
    for name, text in sorted({**parts, **made_texts()}.items()):
        found.update(f"{name}\0{text}\0".encode())
    return found.hexdigest()[:16]


def make(folder: Path) -> dict[str, str]:
    """The scripts by name, made in an empty folder. Raises CalledProcessError where npm fails."""
    for path in PARTS.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for name, text in made_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    npm.install(folder)
    npm.run(folder, "node_modules/.bin/lezer-generator", "cel.grammar", "-o", "cel.js")
    head = f"Made by tools/lezer.py of {hash_of_parts()}."
    options = ("--format=iife", "--target=es2020")
    return {
        name: npm.bundle(folder, f"{name}.js", head, f"--global-name=celc_{name}", *options)
        for name in SCRIPTS
    }


def main() -> int:
    """Write the scripts."""
    with TemporaryDirectory() as folder:
        for name, text in make(Path(folder)).items():
            SCRIPTS[name].write_text(text, encoding="utf-8")
            print(f"{SCRIPTS[name].relative_to(ROOT)}: {len(text):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
