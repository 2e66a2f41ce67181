"""Texts of a file → the types that they show.

A type is one in which `celc run` reads every text of the sample: the tests here are the readers
themselves, or stricter. A number that begins with 0 is a text, because postal codes are.
"""

import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import arrow_type

from celc.interfaces.cli.reading.times import TimeForm

_WHOLE = r"^\s*-?\d+\s*$"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_PADDED = r"^\s*-?0\d"
_TRUTH = r"^(true|false|True|False|TRUE|FALSE)$"
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$"
_DAY = r"^\d{4}-\d\d-\d\d$"

_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y")
_CLOCKS = ("", " %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p", " %H:%M:%S.%f", "T%H:%M:%S")
FORMATS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
"""Forms of times that files often have, besides ISO 8601."""


@frozen
class ShownType:
    """The type that a column shows: its text, and the forms of times that all its values have where
    `celc run` needs one of them."""

    type: str
    forms: tuple[str, ...] = ()


def shown_by_texts(texts: pa.Array, times: TimeForm, *, numbers: bool) -> ShownType:
    """The type of a column of texts. `numbers`: texts can be numbers and truth values, as in CSV;
    in JSON these have a form of their own."""
    known = texts.drop_null()
    if not len(known):
        return ShownType("STRING")
    if numbers and not _some(known, _PADDED):
        if _all(known, _WHOLE):
            return ShownType("LONG" if _is_read(_trimmed(known), "LONG") else "STRING")
        if _all(known, _NUMBER) and _is_read(_trimmed(known), "DOUBLE"):
            return ShownType("DOUBLE")
    if numbers and _all(known, _TRUTH):
        return ShownType("BOOLEAN")
    return _of_times(known, times)


def _of_times(known: pa.Array, times: TimeForm) -> ShownType:
    if times.format is not None:
        if times.of_numbers:
            return ShownType("STRING")
        return ShownType(_type_of_form(times.format) if _are_times(known, times) else "STRING")
    if _all(known, _ISO) and _are_times(known, times):
        return ShownType("DATE" if _all(known, _DAY) else "TIMESTAMP")
    some = known.slice(0, 1000)
    found = [one for one in FORMATS if _are_times(some, TimeForm(one, times.zone))]
    found = [one for one in found if _are_times(known, TimeForm(one, times.zone))]
    return ShownType("STRING", tuple(found))


def _type_of_form(form: str) -> str:
    return "TIMESTAMP" if any(sign in form for sign in ("%H", "%I", "%c", "%X", "%f")) else "DATE"


def with_form(shown: ShownType, form: str | None) -> str:
    """The type of a column once its times are read in a form."""
    return _type_of_form(form) if form is not None and form in shown.forms else shown.type


def values_of(texts: pa.Array, type: str, times: TimeForm) -> pa.Array:
    """The values of a column in the type that it shows."""
    match type:
        case "STRING":
            return texts
        case "TIMESTAMP" | "DATE":
            return times.read(texts, arrow_type(type))
        case "BOOLEAN":
            return pc.equal(pc.utf8_lower(texts), "true")
        case _:
            return _trimmed(texts).cast(arrow_type(type))


def _trimmed(texts: pa.Array) -> pa.Array:
    return pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), "+")


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _some(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _is_read(texts: pa.Array, type: str) -> bool:
    try:
        texts.cast(arrow_type(type))
    except pa.ArrowInvalid:
        return False
    return True


def _are_times(texts: pa.Array, times: TimeForm) -> bool:
    try:
        times.times(texts)
    except (pa.ArrowInvalid, ValueError):
        return False
    return True
