"""Features of clauses, of other queries in the file, and of the call."""

from __future__ import annotations

from strategies_own_functions import DECLARATIONS

from .drafts import Draft, Feature, UnfitError


def _choose(draft: Draft, selector: str) -> None:
    """One selector, or TOTAL or COLLAPSED, is all that SELECT can have."""
    if draft.selector:
        raise UnfitError
    draft.selector = selector


def _selector(draft: Draft) -> None:
    _choose(draft, draft.rng.choice(("NXT ", "LAST ", "MAX ", "STRICT ", "NEXT ", "ALL ")))


def _per_start(draft: Draft) -> None:
    words = ("FIRST ", "LONGEST ", "FIRST DISJOINT ", "LONGEST DISJOINT ")
    _choose(draft, draft.rng.choice(words))


def _any(draft: Draft) -> None:
    if " PER " in draft.limit:
        raise UnfitError  # which match it chooses is not said, so no rows behind it are
    _choose(draft, "ANY ")


def _limit(draft: Draft) -> None:
    draft.limit = draft.rng.choice("123")


def _limit_per(draft: Draft) -> None:
    if draft.limit or draft.selector == "ANY ":
        raise UnfitError
    rng = draft.rng
    length = rng.choice(("PARTITION", "2 MILLISECONDS", "5 MILLISECONDS", "1 SECOND"))
    draft.limit = f"{rng.choice('112')} PER {length}"


def _items(draft: Draft) -> None:
    if draft.items != "*":
        raise UnfitError
    labels = draft.rng.sample(draft.bound, draft.rng.randint(0, len(draft.bound)))
    shown = [draft.rng.choice((one, one, f"{one}[id, ts]")) for one in labels]
    draft.items = ", ".join(shown) or "NONE"


def _expressions(draft: Draft) -> None:
    rng, found = draft.rng, []
    x, y = draft.label(), draft.label()
    if draft.items not in ("*", "NONE"):
        found = [draft.items]
    forms = [f"COUNT({x})", f"SUM({x}.value) / 2", f"LAST({x}.name)", f"COLLECT({x}.id)"]
    forms += [f"MAX({x}.value) - MIN({y}.value)", f"FIRST({x}.key)", f"COUNT(DISTINCT {x}.id)"]
    forms += [f"LAST({x}.ts) - FIRST({y}.ts)", f"AVG({x}.id)"]
    forms += [f"UPPER(LAST({x}.name)) || FIRST({y}.name)", f"ROUND(AVG({x}.value), 1)"]
    if DECLARATIONS in draft.declared:
        forms += [f"fn_near({x}.value, {y}.id)", f"fn_days({x}.ts, {y}.num) + 1"]
    if draft.single:
        one = draft.one_label()
        forms += [f"{one}.value", f"{one}.id * 2 + 1", f"{one}.took", f"{one}.key"]
    chosen = rng.sample(forms, rng.randint(1, 3))
    draft.items = ", ".join([*found, *(f"{one} AS e{n}" for n, one in enumerate(chosen))])


def _total(draft: Draft) -> None:
    _choose(draft, "TOTAL ")
    rng = draft.rng
    items = ["COUNT(*) AS n"]
    if draft.bound and not draft.uncertain:  # where time is, there is COUNT(*) alone
        x = draft.label()
        more = [f"SUM({x}.id) AS s", f"MAX({x}.value) AS m", f"COUNT({x}) AS c"]
        more += [f"AVG({x}.num) AS a", f"MIN({x}.key) AS l", f"SUM({x}.num) - COUNT(*) AS d"]
        items += rng.sample(more, rng.randint(0, 2))
    draft.items = ", ".join(items)
    draft.per = rng.choice(("", "PER END", "PER PARTITION", "PER PARTITION", "PER 2 MILLISECONDS"))
    draft.having = rng.choice(("", "", "n > 1", "n % 2 = 1"))


def _collapsed(draft: Draft) -> None:
    _choose(draft, "COLLAPSED ")
    draft.items = draft.rng.choice(("*", draft.label() if draft.bound else "*", "NONE"))


def _keys(*keys: str) -> Feature:
    name = keys[0]

    def apply(draft: Draft) -> None:
        if draft.partition:
            raise UnfitError
        draft.partition = draft.rng.choice(keys)
        draft.traits.add("keys")

    return Feature(f"PARTITION BY {name}", 5, apply, 2)


def _window(draft: Draft) -> None:
    draft.window = draft.length()


def _consume(draft: Draft) -> None:
    draft.consume = draft.rng.choice(("ANY", "PARTITION" if draft.partition else "ANY"))


# --- the file -------------------------------------------------------------------------------------

_BELOW = (
    "A AS p ; B AS q",
    "(A AS p ; B AS q) FILTER p.id = q.id",
    "A AS p",
    "(A OR C) AS p ; !D ; B AS q",
    "A AS p : C AS q",
    "A AS p ; !C FOR 2 MILLISECONDS",
    "A AS p ; (B)+ ; C AS q",
)


def _reads(draft: Draft) -> None:
    """The query reads rows of another one in place of some events."""
    if draft.whole or draft.below or "T" in draft.streams:
        raise UnfitError
    rng = draft.rng
    window = rng.choice(("", "\nWITHIN 4 MILLISECONDS"))
    formula = rng.choice(_BELOW)
    names = ("id", "value", "name", "num", "key", "took")
    items = ", ".join(f"p.{name} AS {name}" for name in names)
    select = rng.choice(("", "", "", "FIRST ", "LAST "))
    draft.below = f"QUERY one:\nSELECT {select}{items} FROM S\nWHERE {formula}{window}\n"
    at = rng.randrange(len(draft.operands))
    if draft.operands[at].count(" AS ") != 1 or "(" in draft.operands[at]:
        raise UnfitError
    draft.operands[at] = f"one AS {draft.labels[at]}"
    draft.streams = rng.choice((["one", "S"], ["S", "one"]))
    draft.types = [*draft.types, "one"]
    draft.at_end = rng.choice(("open", "open", "closed"))


def _is_read(draft: Draft) -> None:
    """Another query reads the rows of this one."""
    if draft.for_each or draft.selector.strip() in ("TOTAL", "COLLAPSED") or draft.beside:
        raise UnfitError
    rng = draft.rng
    formula = rng.choice(
        (
            "main AS r",
            "main AS r ; B AS f",
            "B AS f ; main AS r",
            "main AS r ; !B ; main AS t",
            "(main AS r)+ ; C AS f",
            "main AS r ALL B AS f",
            "(main AS r ; main AS t) UNLESS A",
            "WITHIN[3 MILLISECONDS [ts]](main AS r ; B AS f)",
        )
    )
    select = rng.choice(("*", "*", "NONE", "COLLAPSED *", "TOTAL COUNT(*) AS n"))
    tail = rng.choice(("", "", " WITHIN 5 MILLISECONDS"))
    if select.startswith("TOTAL"):
        tail += rng.choice((" PER END", " PER PARTITION", "", " HAVING n > 1"))
    draft.beside = f"QUERY top:\nSELECT {select} FROM main, S WHERE {formula}{tail}\n"
    draft.asked.append("top")


def _for_each(draft: Draft) -> None:
    rng = draft.rng
    draft.for_each = True
    x = draft.label()
    condition = rng.choice(
        (
            f"{x}.id = rule.id",
            f"{x}.id = rule.id AND {x}.value >= rule.value",
            f"{x}.value > rule.value",
            f"{x}.name LIKE rule.name",
            f"{x}.id = rule.id OR {x}.name = rule.name",
            f"COUNT({x}) < rule.id",
            f"SUM({x}.value) > rule.value",
        )
    )
    draft.around(f"φ FILTER {condition}")
    if "value AS" in draft.items:
        draft.items += f", LAST({x}.value) * rule.value AS each_0"


def _many(draft: Draft) -> None:
    """The file has other queries, and all are run together."""
    if draft.beside:
        raise UnfitError
    one, other = draft.type(), draft.type()
    if "one" in (one, other):
        raise UnfitError
    clause = draft.rng.choice(("", " PARTITION BY id", " WITHIN 3 MILLISECONDS [ts]"))
    draft.beside = f"QUERY aside:\nSELECT * FROM S WHERE {one} ; {other}{clause}\n"
    draft.traits.add("many")


# --- the call -------------------------------------------------------------------------------------


def _simultaneous(draft: Draft) -> None:
    if draft.uncertain or draft.lasting or not draft.order_by:
        raise UnfitError
    draft.ties = "simultaneous"
    draft.traits.add("ties")


def _equal_times(draft: Draft) -> None:
    draft.traits.add("ties")


def _closed(draft: Draft) -> None:
    draft.at_end = "closed"


def _unordered(draft: Draft) -> None:
    if draft.ties or draft.lasting or draft.below or draft.beside or "MILLISECONDS" in draft.per:
        raise UnfitError
    draft.order_by = ()


def _uncertain(draft: Draft) -> None:
    if draft.lasting:
        raise UnfitError
    draft.uncertain = True


def _lasting(draft: Draft) -> None:
    if draft.uncertain:
        raise UnfitError
    draft.lasting = True


def _strangers(draft: Draft) -> None:
    draft.traits.add("strangers")


def _late_starts(draft: Draft) -> None:
    draft.traits.add("late starts")


def _match_id(draft: Draft) -> None:
    if draft.selector.strip() in ("TOTAL", "COLLAPSED"):
        raise UnfitError
    draft.traits.add("match_id")


CLAUSES = (
    Feature("selector outside", 5, _selector),
    Feature("FIRST and LONGEST", 5, _per_start, 3),
    Feature("ANY", 5, _any),
    Feature("LIMIT", 5, _limit, 2),
    Feature("LIMIT PER", 5, _limit_per, 2),
    Feature("items", 5, _items),
    Feature("expressions", 5, _expressions),
    Feature("TOTAL", 5, _total, 4),
    Feature("COLLAPSED", 5, _collapsed, 3),
    _keys("id", "num"),
    _keys("name"),
    _keys("key", "key, id", "name, key"),
    _keys("id, name", "num, name"),
    _keys("[src, dst]", "[dst, src], name"),
    Feature("WITHIN", 5, _window, 3),
    Feature("CONSUME BY", 5, _consume, 2),
    Feature("reader", -1, _reads, 4),
    Feature("is read", 6, _is_read, 4),
    Feature("FOR EACH", 4, _for_each, 4),
    Feature("many queries", 6, _many, 2),
    Feature("simultaneous", 7, _simultaneous, 3),
    Feature("equal times", 7, _equal_times),
    Feature("closed", 7, _closed),
    Feature("without order", 7, _unordered),
    Feature("uncertain time", -1, _uncertain),
    Feature("events that last", -1, _lasting, 3),
    Feature("undeclared types", 7, _strangers),
    Feature("late starts", 7, _late_starts, 2),
    Feature("match_id", 7, _match_id, 2),
)
