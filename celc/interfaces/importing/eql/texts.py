"""The constants of EQL: texts with escapes, wildcards, regular expressions, networks."""

from __future__ import annotations

import ipaddress
import re

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}


def constant_text(written: str) -> str:
    """The text that a constant in quotes stands for. Between three quotes no sign is an escape."""
    if written.startswith('"""'):
        return written[3:-3]
    return re.sub(r"\\(u\{([0-9a-fA-F]+)\}|.)", _unescaped, written[1:-1], flags=re.DOTALL)


def _unescaped(found: re.Match[str]) -> str:
    if found[2] is not None:
        return chr(int(found[2], 16))
    # `\*` and `\?` are kept: they say that no wildcard is meant.
    return _ESCAPES.get(found[1], found[0])


def wildcard_pattern(text: str) -> tuple[str, bool]:
    """The pattern of LIKE for a text with `*` and `?`; of a text without them the text itself, and
    True."""
    signs = re.findall(r"\\[*?]|.", text, flags=re.DOTALL)
    if not any(sign in ("*", "?") for sign in signs):
        return "".join(sign[-1] if len(sign) == 2 else sign for sign in signs), True
    pattern = ""
    for sign in signs:
        if sign in ("*", "?"):
            pattern += "%" if sign == "*" else "_"
        elif sign[-1] in "%_\\":
            pattern += "\\" + sign[-1]
        else:
            pattern += sign[-1]
    return pattern, False


def lucene_problem(pattern: str) -> str | None:
    """Why a regular expression of Lucene is none of RE2's, or does not mean the same there."""
    special = re.search(r"(?<!\\)(?:\\\\)*([~&@#<>\"])", pattern)
    if special:
        return (
            f"'{special[1]}' is an operator of Lucene's regular expressions, which RE2 has not; "
            f"as a sign of the text it is written '\\{special[1]}'"
        )
    anchor = re.search(r"(?<!\\)(?:\\\\)*([\^$])", re.sub(r"\[\^?[^\]]*\]", "", pattern))
    if anchor:
        return (
            f"'{anchor[1]}' is a sign of the text in Lucene's regular expressions: '\\{anchor[1]}'"
        )
    try:
        re.compile(pattern)
    except re.error as problem:
        return f"this is no regular expression: {problem}"
    return None


def network_pattern(text: str) -> str | None:
    """A regular expression of the IPv4 addresses of a network, such as `10.0.0.0/8`; None where it
    is no network of IPv4."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None
    octets = str(network.network_address).split(".")
    whole, bits = divmod(network.prefixlen, 8)
    parts = [re.escape(one) for one in octets[:whole]]
    if bits:
        first = int(octets[whole])
        parts.append(f"(?:{'|'.join(map(str, range(first, first + 2 ** (8 - bits))))})")
    parts += [r"[0-9]+"] * (4 - len(parts))
    return r"\.".join(parts)
