"""Syntax errors in clauses that only SELECT TOTAL has: PER and HAVING. Each function returns its
message about a place, or None where its case does not apply."""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.parse.durations import in_units
from celc.parse.mistakes.clauses import ORDER, moved
from celc.parse.mistakes.place import FULL_NAMES, Place, described
from celc.parse.mistakes.tokens import offered
from celc.parse.tables import END
from celc.parse.tokens import keyword_of, word_of

GROUPS = (
    "PER END is a row for each event at which matches end, PER PARTITION one for each part of the "
    "stream, PER 1 HOUR one for each hour"
)
HAVING_OF_TOTALS = "HAVING judges totals, in a query SELECT TOTAL"
_ORDER = ORDER.replace("LIMIT", "PER, HAVING")


def per_without_total(place: Place) -> Diagnostic | None:
    """`SELECT * … PER PARTITION`."""
    following = place.following
    is_group = keyword_of(following) in ("END", "PARTITION")
    is_group = is_group or following.type in ("INTEGER", "DOUBLE")
    if keyword_of(place.found) != "PER" or not is_group or not place.accepts(END):
        return None
    if place.last("SELECT") is None or place.last("TOTAL") is not None:
        return None
    return error(
        "needs-total",
        place.found.span,
        "PER says which matches are counted together, in a query SELECT TOTAL",
        "to count matches write SELECT TOTAL COUNT(*) AS n",
        "to look for matches in each part of the stream write PARTITION BY",
    )


def before_from(place: Place) -> Diagnostic | None:
    """`SELECT TOTAL COUNT(*) AS n PER 1 DAY FROM S …`, and HAVING there."""
    keyword = keyword_of(place.found)
    if keyword not in ("PER", "HAVING") or place.last("TOTAL") is None:
        return None
    if not (place.accepts("FROM") or place.accepts("WHERE")) or place.accepts(END):
        return None
    end = place.statement_end()
    words = [keyword_of(token) for token in place.tokens[place.index : end]]
    begins = next((words.index(word) for word in ("FROM", "WHERE") if word in words), 0)
    if not begins:
        return None
    begins += place.index
    moved = f"{place.raw(begins, end)} {place.raw(place.index, begins)}"
    return error(
        "clause-order",
        place.found.span,
        f"{keyword} must stand behind the formula and its clauses",
        f"write {offered(moved)}",
        _ORDER,
        fixes=[Fix(place.span(place.index, end), moved)],
    )


def having_without_total(place: Place) -> Diagnostic | None:
    """`SELECT * … HAVING COUNT(*) > 5`: a condition on what only totals have."""
    if word_of(place.found) != "HAVING" or place.last("TOTAL") is not None:
        return None
    if not place.accepts(END) or place.last("WHERE") is None:
        return None
    return error(
        "needs-total",
        place.found.span,
        HAVING_OF_TOTALS,
        "to count matches write SELECT TOTAL COUNT(*) AS n, and behind the clauses HAVING n > 5",
        "a condition on each match stands in the formula, after FILTER",
    )


def group(place: Place) -> Diagnostic | None:
    """`PER HOUR`, `PER device` and PER at the end."""
    if place.before != "PER":
        return None
    mended = in_units("1", place.found.text) if place.found.type == "NAME" else None
    if mended is not None and mended.endswith("EVENTS"):
        mended = None
    groups, choices = GROUPS, "END, PARTITION or a duration"
    if place.last("LIMIT") is not None:
        choices = "PARTITION or a duration"
        groups = (
            "LIMIT 1 PER PARTITION is the first match of each part, which PARTITION BY names; "
            "LIMIT 1 PER 1 HOUR is one at most in an hour"
        )
    hints = [groups] if mended is None else [f"write PER {mended}", groups]
    message = f"after PER stands {choices}, but {described(place.found)} is none"
    fixes = [] if mended is None else [Fix(place.found.span, mended)]
    return error("unknown-group", place.found.span, message, *hints, fixes=fixes)


def clause_order(place: Place) -> Diagnostic | None:
    """`… PER PARTITION WITHIN 5 MINUTES` and `… HAVING n > 1 PER PARTITION`."""
    keyword = keyword_of(place.found)
    if keyword not in ("PARTITION", "WITHIN", "CONSUME", "PER") or place.accepts(keyword):
        return None
    later = (
        [place.last("HAVING")] if keyword == "PER" else [place.last("PER"), place.last("HAVING")]
    )
    first = next((index for index in later if index is not None), None)
    if first is None or place.last("TOTAL") is None:
        return None
    before = place.tokens[first]
    full = FULL_NAMES.get(keyword, keyword)
    return moved(place, f"{full} must stand before {before.type}", before, _ORDER)
