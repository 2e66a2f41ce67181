"""Numbers and truths as texts, as Java and Spark write and read them.

A function that reads gives None for a text that is no such value.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

BLANK = "".join(map(chr, (*range(0x21), 0x7F)))
"""The characters that Spark passes over at both ends of a text."""

BLANK_OF_JAVA = BLANK[:-1]
"""Those that Java passes over at both ends of a DOUBLE or FLOAT."""


# --- written --------------------------------------------------------------------------------------


def texts_of(column: pa.Array) -> pa.Array:
    """DOUBLEs or FLOATs as texts: the fewest digits that tell a number from all others, as Java
    writes them since its version 19."""
    values = np.asarray(column.fill_null(0.0))
    # By their bits, because −0.0 and 0.0 are equal.
    distinct, places = np.unique(values.view(f"i{values.itemsize}"), return_inverse=True)
    texts = pa.array([text_of(one) for one in distinct.view(values.dtype)], pa.string())
    return texts.take(pa.array(places, mask=~np.asarray(column.is_valid())))


def text_of(value: np.floating) -> str:
    """A DOUBLE or FLOAT as a text, in the same form."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    sign = "-" if np.signbit(value) else ""
    size = abs(value)
    if size == 0:
        return f"{sign}0.0"
    text = np.format_float_scientific(size, unique=True, trim="-")
    digits, exponent = text.split("e")
    if "." not in digits:
        # Java takes the nearest number of two digits.
        digits, exponent = f"{float(size):.1e}".split("e")
    if 1e-3 <= size < 1e7:
        plain: str = np.format_float_positional(float(f"{digits}e{exponent}"), trim="0")
        return sign + plain
    return f"{sign}{digits}E{int(exponent)}"


# --- read -----------------------------------------------------------------------------------------

_WHOLE = re.compile(r"([+-]?)([0-9]*)([.][0-9]*)?", re.DOTALL)


def whole(bits: int, *, with_point: bool) -> Callable[[str], int | None]:
    """What reads a whole number with a sign, of 8 to 64 bits.

    with_point: whether a point and digits may follow, which are left out.
    """
    most = 2 ** (bits - 1) - 1

    def read(text: str) -> int | None:
        found = _WHOLE.fullmatch(text.strip(BLANK))
        if found is None:
            return None
        sign, digits, rest = found.groups()
        if not digits and rest is None:
            return None
        if rest is not None and not with_point:
            return None
        digits = digits.lstrip("0")
        if len(digits) > len(str(most)):
            return None
        value = int(f"{sign}{digits or 0}")
        return value if -most - 1 <= value <= most else None

    return read


_DECIMAL = re.compile(r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+[.]?|[0-9a-fA-F]*[.][0-9a-fA-F]+)[pP][+-]?[0-9]+"
)
_INFINITE = frozenset({"inf", "infinity"})


def double(text: str) -> float | None:
    """A DOUBLE, as Java and Spark read it."""
    plain = text.strip(BLANK_OF_JAVA)
    lower = plain.lower()
    if lower == "nan" or plain in ("+NaN", "-NaN"):
        return math.nan
    if lower.lstrip("+-") in _INFINITE and len(lower) - len(lower.lstrip("+-")) < 2:
        return -math.inf if lower.startswith("-") else math.inf
    number = plain[:-1] if plain[-1:] in ("d", "D", "f", "F") else plain
    if _HEXADECIMAL.fullmatch(number):
        try:
            return float.fromhex(number)
        except OverflowError:
            return -math.inf if number.startswith("-") else math.inf
    return float(number) if _DECIMAL.fullmatch(number) else None


def single(text: str) -> float | None:
    """A FLOAT, as Java and Spark read it: the one that is nearest to the text.

    It is made of the DOUBLE that is nearest. Where that lies in the middle of two FLOATs, and the
    text does not, the DOUBLE beside it decides; otherwise the text would be rounded twice.
    """
    wide = double(text)
    if wide is None or not math.isfinite(wide):
        return wide  # what is too large for a DOUBLE is so for a FLOAT
    number = text.strip(BLANK_OF_JAVA).rstrip("dDfF")
    if np.float64(np.float32(wide)) != wide and _DECIMAL.fullmatch(number):
        exact = Decimal(number)
        if exact != Decimal(wide):
            away = math.nextafter(wide, math.inf if exact > Decimal(wide) else -math.inf)
            is_middle = (np.float64(wide).view(np.int64) & (2**29 - 1)) == 2**28
            wide = away if is_middle else wide
    with np.errstate(over="ignore"):
        return float(np.float32(wide))


READ: dict[str, Callable[[str], float | None]] = {"DOUBLE": double, "FLOAT": single}

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})


def truth(text: str) -> bool | None:
    """A BOOLEAN, as Spark reads it."""
    word = text.strip(BLANK).lower()
    return True if word in _TRUE else (False if word in _FALSE else None)
