"""What mkdocs lacks for documents that are read in a repository as well.

- Documents outside docs/ that a page links to, README.md first, become pages of the site.
- Links are written as they work in the repository, and led here to the page of the site.
- Comments that tell the tests what a block is are left out, and so is the backslash of `\\|` in the
  code of a table, which GitHub's tables want and Python-Markdown's do not.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.txt",
    "examples/README.md": "demo.md",
    "generated/README.md": "generated.md",
    "tests/README.md": "inside/tests.md",
    "tests/cases/README.md": "cases.md",
    "tests/checkpoints/README.md": "checkpoints.md",
    "tools/site/api.md": "api.md",
    **{
        readme.relative_to(ROOT).as_posix(): f"inside/{readme.parent.name}.md"
        for folder in ("celc", "runtime")
        for readme in sorted((ROOT / folder).rglob("README.md"))
    },
}
"""The pages that do not come from docs/: where they stand in the repository, and in the site."""

_PLACES = {page: place for place, page in ELSEWHERE.items()}
_CODE = re.compile(r"(?ms)^(`{3,}).*?^\1$|(?<!`)`[^`\n]+`(?!`)")
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


COLOURS = "colours.js"
_COLOURED = 'document.querySelectorAll(".celc code").forEach(celc_colours.colour);\n'


def on_files(files: Any, config: Any) -> Any:
    """The site's pages: those of docs/, and those from elsewhere; and the script that colours
    queries, as in reports."""
    script = (ROOT / "templates" / COLOURS).read_text("utf-8") + _COLOURED
    files.append(File.generated(config, COLOURS, content=script))
    for place, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / place).read_text("utf-8")))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """The text of a page as mkdocs wants it."""
    return site_text(text, page.file.src_uri)


def site_text(text: str, page: str) -> str:
    """The text of a page, whose links lead to pages of the site; code is left as it is.

    Raises PluginError for a link to a file of the repository that is no page.
    """
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [_prose(text[end : code.start()], page), _shown(code[0])]
        end = code.end()
    parts.append(_prose(text[end:], page))
    lines = "".join(parts).splitlines(keepends=True)
    return "".join(_row(line) if line.startswith("|") else line for line in lines)


def _prose(text: str, page: str) -> str:
    without = re.sub(r"(?m)^<!-- .* -->\n", "", text)
    return _LINK.sub(lambda link: link[1] + _led(link[2], page) + link[3], without)


def _shown(code: str) -> str:
    """A query is a text of the class `celc`: Pygments has a language `cel` that is another one."""
    return re.sub(r"\A(`{3,})cel\n", r"\1{.text .celc}\n", code)


def _led(target: str, page: str) -> str:
    if "://" in target:
        return target
    place = _PLACES.get(page, f"docs/{page}")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    inside = ELSEWHERE.get(there, there.removeprefix("docs/"))
    if inside == there:
        raise PluginError(f"{place} links to {target}, which is no page of the site")
    return posixpath.relpath(inside, posixpath.dirname(page) or ".")


def _row(line: str) -> str:
    return re.sub(r"`[^`\n]+`", lambda code: code[0].replace(r"\|", "|"), line)
