"""The text of a page: a template with its style, its script and its data.

The page's Content-Security-Policy allows no loading, and no script or style except the page's own,
known by their hashes. Texts reach the page in two ways: through Jinja, which escapes them, and as
JSON in a data block. No character in that JSON can end the block.
"""

import base64
import hashlib
import html
import json
import re
from typing import Any

from celc.codegen.text.templates import environment, template_folder
from celc.diagnostics.source import visible_lines


class Page(str):
    """A whole page of HTML. A notebook shows it in a frame of its own."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return (
            '<iframe sandbox="allow-scripts" title="celc" style="width:100%;height:860px;'
            f'border:0" srcdoc="{html.escape(self)}"></iframe>'
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text that IPython shows in a terminal, and keeps beside the page in a notebook."""
        printer.text(f"a page of HTML, {len(self):,} characters")


def page_of(
    template: str, scripts: tuple[str, ...], title: str, data: dict[str, Any], **more: object
) -> Page:
    """The page of a template: `NAME.html.jinja`, `NAME.css`, and scripts, the parts of one."""
    style = _beside("page.css") + _beside(f"{template}.css")
    parts = "".join(_beside(f"{name}.js") for name in ("page", *scripts))
    script = f'(() => {{\n"use strict";\n{parts}}})();\n'
    text = (
        environment(escapes=True)
        .get_template(f"{template}.html.jinja")
        .render(
            title=visible_title(title),
            style=_inside(style),
            style_hash=_hash(style),
            script=_inside(script),
            script_hash=_hash(script),
            data=_inside(json_text(data)),
            **more,
        )
    )
    return Page(text)


def visible_title(title: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in title)


def _visible(data: Any) -> Any:
    """Data without characters that change how a browser shows other text."""
    match data:
        case str():
            return visible_lines(data)
        case dict():
            return {name: _visible(value) for name, value in data.items()}
        case list() | tuple():
            return list(map(_visible, data))
        case _:
            return data


def json_text(data: object) -> str:
    """Data as JSON in ASCII without `<`, `>` and `&`, as a `script` element can hold it."""
    text = _dumped(data)
    if "\\" in text or "\x7f" in text:
        text = _dumped(_visible(data))  # slow, because data can be a million numbers
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _dumped(data: object) -> str:
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _inside(text: str) -> str:
    """A text that the template does not escape. It must not end its own element."""
    assert not re.search("</(script|style)", text, re.IGNORECASE)
    assert "<!--" not in text
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _beside(name: str) -> str:
    return (template_folder() / name).read_text("utf-8")
