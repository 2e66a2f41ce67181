"""Random texts of JSON, dirty ones among them, for tests that compare two readers."""

import random

PATHS = ("$.b", "$.b.c", "$.b[0]", "$.b[1].c", "$['b c']", "$[0]", "$[1].b[0]", "$.b.c.b", "$.ß")

_NAMES = (*("b",) * 4, *("c",) * 2, "b c", "ß", "d", "", "B")
_NUMBERS = (
    *(
        "0",
        "-0",
        "1",
        "01",
        "-7",
        "+1",
        "1.50",
        "1.",
        ".5",
        "-0.0",
        "1e3",
        "1E+22",
        "1e-7",
        "1e400",
    ),
    *("9223372036854775808", "123456789012345678901234567890", "0.1", "100.0", "NaN", "-", "1e"),
    *(
        "2147483648",
        "1" * 1000,
        "1" * 1001,
        "12345678.9",
        "1.0E7",
        "5e-324",
        "-1E400",
        "2.50",
        "00",
    ),
)
_TEXTS = (
    *(
        "",
        "a",
        "b c",
        "ß😀",
        "\\n",
        '\\"',
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\ude00",
        "\\x",
    ),
    *("\\/", "\\'", "'", "\n", "\x01", "\\u001f", "\t\x7f", "null", "\\u00", "5", "\\\\", " x "),
    *("\\b\\f\\r\\t", "\u2028", "\\u0000"),
)
_WORDS = ("true", "false", "null", "null", "True", "nul", "nulls")
_BLANKS = (*(" ", "\n", "\t ", "\r") * 9, "\u00a0", "\x0b")


def json_text(draw: random.Random) -> str:
    """A text of JSON, or one with mistakes."""
    text = _blank(draw) + _value(draw, 0) + draw.choice(("", "", "", " ", "x", " ]", "{", ","))
    for _ in range(draw.choice((*(0,) * 9, 1, 2))):
        place = draw.randrange(len(text) + 1)
        text = draw.choice(
            (
                text[:place],
                text[:place] + text[place + 1 :],
                text[:place] + draw.choice("{}[]:,\"'\\1 eb-.") + text[place:],
            )
        )
    return text


def _blank(draw: random.Random) -> str:
    return draw.choice(_BLANKS) if draw.random() < 0.15 else ""


def _value(draw: random.Random, depth: int) -> str:
    kind = draw.random()
    if depth < 4 and kind < (0.9 if depth == 0 else 0.5):
        if kind < 0.25 or (depth == 0 and kind < 0.7):
            inner = ",".join(_field(draw, depth) for _ in range(draw.randint(0, 4)))
            return f"{{{inner}{_comma(draw)}}}"
        inner = ",".join(_around(draw, _value(draw, depth + 1)) for _ in range(draw.randint(0, 3)))
        return f"[{inner}{_comma(draw)}]"
    if kind < 0.7:
        number = str(
            draw.choice((draw.gauss(0, 1e6), draw.random(), draw.randint(-(10**9), 10**9)))
        )
        return draw.choice((number, draw.choice(_NUMBERS)))
    return _quoted(draw, draw.choice(_TEXTS)) if kind < 0.9 else draw.choice(_WORDS)


def _field(draw: random.Random, depth: int) -> str:
    name = _quoted(draw, draw.choice(_NAMES)) if draw.random() < 0.99 else draw.choice(_NAMES)
    return _around(draw, name) + ":" + _around(draw, _value(draw, depth + 1))


def _around(draw: random.Random, text: str) -> str:
    return _blank(draw) + text + _blank(draw)


def _comma(draw: random.Random) -> str:
    return "," if draw.random() < 0.02 else ""


def _quoted(draw: random.Random, text: str) -> str:
    quote = "'" if draw.random() < 0.1 else '"'
    return f"{quote}{text}{quote}"
