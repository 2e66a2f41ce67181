"""The Tab key in a cell of `%%cel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher

from celc.editor.completion import word_start
from celc.editor.languages import LANGUAGES


def completer(shell: Any, magic: str) -> Callable[[Any], dict[str, Any]]:
    """A matcher of IPython (its second interface) for the cells of one magic, and of no others."""

    def complete(context: Any) -> dict[str, Any]:
        head, _, body = context.full_text.partition("\n")
        if not head.startswith(f"%%{magic}") or context.cursor_line == 0:
            return {"completions": []}
        lines = body.split("\n")
        offset = sum(len(line) + 1 for line in lines[: context.cursor_line - 1])
        offset += context.cursor_position
        language = LANGUAGES["match_recognize" if "match_recognize" in head else "cel"]
        found = language.complete(body, offset)
        return {
            "completions": [SimpleCompletion(text=one.text, type=one.kind) for one in found],
            "matched_fragment": body[word_start(body, offset) : offset],
            "suppress": True,
        }

    with_context: Callable[[Any], dict[str, Any]] = context_matcher(identifier=f"celc.{magic}")(
        complete
    )
    return with_context
