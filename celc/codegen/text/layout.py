"""Module text → the same text as black formats it, where each shape of text is formatted once.

Black takes most of the time of a compilation, and cannot be interrupted. So a module is formatted
in parts, one for each query. Parts that differ only in numbers are formatted once, because black
looks at the length of a number and not at its digits. Rejected: generating text that needs no
formatting, because only black should decide where long expressions break.
"""

import re
from collections.abc import Sequence

from celc.diagnostics.deadline import look

LINE_LENGTH = 100

AS_IT_IS = "# fmt: off\n"
"""The first line of a part that is a table of thousands of lines, which black would take minutes
for."""

_DIGITS = re.compile(r"[0-9]+")
_OTHER_BASE = re.compile(r"0[xXbBoO]")


def formatted(parts: Sequence[str]) -> str:
    """The text of a module as black formats it, from its parts in order.

    A part consists of whole statements at the top level. Each part except the first begins with a
    comment or an assignment, and does not follow a function. So the only blank lines between two
    parts are those at the end of the first.
    """
    known: dict[str, str] = {}
    return "".join(_formatted(part, known) for part in parts)


def _formatted(part: str, known: dict[str, str]) -> str:
    look()
    if part.startswith(AS_IT_IS):
        return part
    body = part.rstrip("\n")
    # Black leaves at most two blank lines between statements.
    end = part[len(body) :][:3]
    if _OTHER_BASE.search(body):
        text = _by_black(body)
    else:
        shape = _DIGITS.sub(lambda found: "1" * len(found[0]), body)
        if shape not in known:
            known[shape] = _by_black(shape)
        digits = iter(_DIGITS.findall(body))
        text = _DIGITS.sub(lambda _: next(digits), known[shape])
        assert next(digits, None) is None, "black keeps all numbers, in their order"
    look()
    return text.rstrip("\n") + end


def _by_black(text: str) -> str:
    # Black takes longer to import than most queries to compile, and a run formats nothing.
    import black
    from black.mode import TargetVersion

    mode = black.Mode(target_versions={TargetVersion.PY311}, line_length=LINE_LENGTH)
    return black.format_str(text, mode=mode)
