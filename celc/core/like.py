"""SQL's LIKE patterns as regular expressions of RE2."""

import re


def like_to_regex(pattern: str) -> str:
    r"""The RE2 expression that matches a whole text exactly where the text is LIKE `pattern`.

    `%` is any text, `_` one character; both cross line ends. `\\` makes the next character literal.
    The pattern was checked before: it does not end in a single `\\`.
    """
    parts = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            parts.append(_literal(pattern[position]))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(_literal(character))
        position += 1
    return "(?s)\\A" + "".join(parts) + "\\z"


# Signs that rarely occur in a literal text: `.*`, `^a`, `a$`, `[a-z]`, `a|b`.
_OF_REGEXES = re.compile(r"\.[*+]|^\^|\$$|\[[^\]]+\]|[^|]\|[^|]|\(\?")
_SIMPLE_REGEX = re.compile(r"(\^?)((?:\.\*|[^\\.*+?()|\[\]{}^$%_])*)(\$?)")


def looks_like_regex(pattern: str) -> bool:
    """Whether a LIKE pattern without % and _ has signs that only regular expressions need."""
    return not set("%_") & set(pattern) and bool(_OF_REGEXES.search(pattern))


def regex_to_like(pattern: str) -> str | None:
    """The LIKE pattern that means the same as a regular expression; None where there is none.

    There is one for an expression of ordinary characters, `.*`, `^` and `$`.
    """
    simple = _SIMPLE_REGEX.fullmatch(pattern)
    if simple is None:
        return None
    begins, middle, ends = simple.groups()
    text = middle.replace(".*", "%")
    return re.sub("%+", "%", f"{'' if begins else '%'}{text}{'' if ends else '%'}")


def _literal(character: str) -> str:
    """The RE2 expression that matches this character alone."""
    # re.escape is Python's. RE2 refuses an escaped non-ASCII character, and reads an escaped NUL as
    # an octal digit.
    if character == "\0":
        return "\\x00"
    if not character.isascii() or character.isalnum() or character == "_":
        return character
    return re.escape(character)
