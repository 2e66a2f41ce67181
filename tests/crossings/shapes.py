"""Features of formulas: operands, what stands between and around them, absences at the ends."""

from __future__ import annotations

import re

from .drafts import Draft, Feature, UnfitError


def _place(draft: Draft) -> int:
    """The place of an operand that is a plain event still."""
    plain = [n for n, one in enumerate(draft.operands) if re.fullmatch(r"\w+ AS \w", one)]
    if draft.whole or not plain:
        raise UnfitError
    return draft.rng.choice(plain)


def _joint(draft: Draft) -> int:
    """The place of a `;` between two operands, with nothing else at it."""
    places = [n for n, one in enumerate(draft.joints) if one == " ; "]
    if draft.whole or not places:
        raise UnfitError
    return draft.rng.choice(places)


# --- operands -------------------------------------------------------------------------------------


def _repeat(draft: Draft) -> None:
    at = _place(draft)
    draft.operands[at] = f"({draft.operands[at]})+"
    draft.loses(draft.labels[at])


def _repeat_contiguous(draft: Draft) -> None:
    at = _place(draft)
    draft.operands[at] = f"({draft.operands[at]}):+"
    draft.loses(draft.labels[at])


def _rounds(draft: Draft) -> None:
    at, rng = _place(draft), draft.rng
    count = rng.choice(("{2}", "{1,2}", "{2,3}", "{2,}", "{,2}", ":{2}", ":{1,2}", ":{2,}"))
    draft.operands[at] = f"({draft.operands[at]}){count}"
    draft.loses(draft.labels[at])


def _rounds_with_condition(draft: Draft) -> None:
    at, rng = _place(draft), draft.rng
    label = draft.labels[at]
    condition = rng.choice(
        (
            f"{label}.value > 1",
            f"{label}.id = w.id",
            f"w.value >= {label}.value",
            f"{label}.name <> w.name",
        )
    )
    body = f"{draft.operands[at]} ; {draft.type()} AS w" if "w" in condition else draft.operands[at]
    draft.operands[at] = f"({body} FILTER {condition})+"
    draft.loses(label)


def _optional(draft: Draft) -> None:
    at = _place(draft)
    beside = [*draft.joints, *draft.operands]
    if len(draft.operands) < 2 or any("!" in one or "FIRST" in one for one in beside):
        raise UnfitError
    draft.operands[at] += "?"
    draft.loses(draft.labels[at])


def _either_type(draft: Draft) -> None:
    at, rng = _place(draft), draft.rng
    label = draft.labels[at]
    one, other = draft.type(), draft.type()
    draft.operands[at] = f"({one} OR {other}) AS {label}"
    if rng.random() < 0.5:
        is_not = rng.choice(("", "NOT "))
        draft.operands[at] = f"(({one} OR {other}) AS {label} FILTER {label} IS {is_not}{one})"


def _of_stream(draft: Draft) -> None:
    at = _place(draft)
    if draft.below:
        raise UnfitError
    draft.operands[at] = f"{draft.rng.choice(draft.streams[-1:])}>{draft.operands[at]}"


def _two_streams(draft: Draft) -> None:
    if draft.below:
        raise UnfitError
    draft.streams = draft.rng.choice((["S", "T"], ["T", "S"]))
    at = _place(draft)
    draft.operands[at] = f"{draft.rng.choice('ST')}>{draft.operands[at]}"


def _selector_inside(draft: Draft) -> None:
    word, rng = draft.rng.choice(("NXT", "LAST", "MAX", "STRICT")), draft.rng
    at = _place(draft)
    more = rng.choice((f"{draft.type()} ; ", "", f"({draft.type()} AS s)+ ; "))
    draft.operands[at] = f"{word}({more}{draft.operands[at]})"


def _all_operand(draft: Draft) -> None:
    at = _place(draft)
    draft.operands[at] = f"({draft.operands[at]} ALL {draft.type()} AS u)"
    draft.bound.append("u")
    draft.single.append("u")


def _window_of_part(draft: Draft) -> None:
    at = _place(draft)
    inside = f"{draft.operands[at]} ; {draft.type()}"
    draft.operands[at] = f"WITHIN[{draft.length()}]({inside})"


def _contiguous(draft: Draft) -> None:
    draft.joints[_joint(draft)] = " : "


def _absence_between(draft: Draft) -> None:
    if any(one.endswith("?") for one in draft.operands):
        raise UnfitError
    at = _joint(draft)
    draft.joints[at] = f" ; !{_absent(draft)} ; "


def _first(draft: Draft) -> None:
    """FIRST before an operand, perhaps with a condition on what is to the left of it."""
    at, rng = _joint(draft), draft.rng
    operand = draft.operands[at + 1]
    if "FIRST" in operand or any(one.endswith("?") for one in draft.operands):
        raise UnfitError
    draft.joints[at] = " ; FIRST "
    if re.fullmatch(r"\w+ AS \w", operand) and rng.random() < 0.6:
        mine, left = draft.labels[at + 1], draft.labels[at]
        forms = [f"{mine}.id = {left}.id", f"{mine}.value > {left}.value", f"{mine}.value > 1"]
        operand = f"({operand} FILTER {rng.choice(forms)})"
        if rng.random() < 0.2:
            operand = f"({draft.type()} ; {operand})"
        draft.operands[at + 1] = operand


def _rounds_of_first(draft: Draft) -> None:
    """A chain of FIRST, of which a condition may compare neighbours."""
    at, rng = _joint(draft), draft.rng
    operand, label = draft.operands[at + 1], draft.labels[at + 1]
    if not re.fullmatch(r"\w+ AS \w", operand) or "?" in "".join(draft.operands):
        raise UnfitError
    draft.joints[at] = "  ; "  # no other feature changes it
    left = draft.labels[at]
    forms = ["", "", f"{label}.value > 1", f"{label}.id = {left}.id"]
    condition = rng.choice([*forms, f"{label}.value > PREV({label}.value)"])
    chosen = f"({operand} FILTER {condition})" if condition else f"({operand})"
    absent = rng.choice(("", "", f"!{draft.type()} ; "))
    bounds = rng.choice(("+", "+", "{2}", "{1,2}", "{,2}"))
    draft.operands[at + 1] = f"({absent}FIRST {chosen}){bounds}"
    draft.loses(label)


def _absent(draft: Draft) -> str:
    """What must not occur: an event, one tied to the formula, or something longer."""
    rng = draft.rng
    one, other = draft.type(), draft.type()
    forms = [one, one, f"({one} OR {other})", f"({one} AS n FILTER n.value > 2)"]
    forms += [f"({one} ; {other})", f"(WITHIN[{draft.length()}]({one} ; {other}))"]
    # A selector compares matches over the whole stream.
    forms += [f"(NXT({one} AS n ; {other} AS k FILTER n.id = k.id))"]
    if draft.bound:
        forms += [f"({one} AS n FILTER n.id = {draft.label()}.id)"] * 3
        forms += [f"({one} AS n FILTER n.value > {draft.label()}.value)"]
    return rng.choice(forms)


# --- the formula ----------------------------------------------------------------------------------


def _or_branch(draft: Draft) -> None:
    rng = draft.rng
    label = rng.choice((*draft.labels, "v"))
    draft.around(f"φ OR {rng.choice(('', f'{draft.type()} ; '))}{draft.type()} AS {label}")
    draft.single = [] if len(draft.single) != 1 or draft.single != [label] else draft.single
    draft.bound += [label] if label not in draft.bound else []


def _and_branch(draft: Draft) -> None:
    draft.around(f"(φ AND (φ OR {draft.type()}))")


def _all_branch(draft: Draft) -> None:
    draft.around(f"φ ALL ({draft.type()} AS more)")
    draft.bound.append("more")
    draft.single.append("more")


def _unless(draft: Draft) -> None:
    draft.around(f"φ UNLESS {_absent(draft)}")


def _project(draft: Draft) -> None:
    kept = draft.rng.sample(draft.bound, draft.rng.randint(1, len(draft.bound)))
    draft.around(f"PROJECT[{', '.join(kept)}]φ")
    draft.bound = [one for one in draft.bound if one in kept]
    draft.single = [one for one in draft.single if one in kept]


def _rename(draft: Draft) -> None:
    old = draft.label()
    draft.around(f"φ[{old} -> renamed]")
    draft.bound = [one if one != old else "renamed" for one in draft.bound]
    draft.single = [one if one != old else "renamed" for one in draft.single]


def _label_of_all(draft: Draft) -> None:
    draft.around("φ AS every")
    draft.bound.append("every")


def _strict(draft: Draft) -> None:
    draft.around("STRICT(φ)")


def _selector_behind(draft: Draft) -> None:
    word = draft.rng.choice(("NXT", "LAST", "MAX"))
    draft.around(draft.rng.choice((f"{draft.type()} ; {word}(φ)", f"{word}(φ) ; {draft.type()}")))


def _repeated_whole(draft: Draft) -> None:
    draft.around(draft.rng.choice(("φ+", "φ:+", "φ{1,2}", "φ{2}")))
    draft.single = []


# --- absences at the ends -------------------------------------------------------------------------


def _absence_before(draft: Draft) -> None:
    draft.around(f"(!{_absent(draft)} FOR {draft.length()} ; φ)")


def _absence_after(draft: Draft) -> None:
    rng = draft.rng
    length = f" FOR {draft.length()}"
    if rng.random() < 0.2:
        draft.window, length = draft.window or draft.length(), ""
    draft.around(f"φ ; !{_absent(draft)}{length}")
    draft.at_end = rng.choice(("open", "closed"))


def _or_of_absences(draft: Draft) -> None:
    """Branches of different length, of which a condition may rule one out."""
    rng = draft.rng
    one = f"φ ; !{_absent(draft)} FOR {draft.length()}"
    other = f"{draft.type()} AS others ; !{draft.type()} FOR {draft.length()}"
    if rng.random() < 0.3:
        other = f"{draft.type()} AS others"
    sides = [f"({one})", f"({other})"]
    rng.shuffle(sides)
    draft.around(f"({' OR '.join(sides)})")
    draft.single = []
    draft.bound.append("others")
    label = draft.label()
    conditions = (
        f"COUNT({label}) = 1",
        f"COUNT({label}) < 1",
        "COUNT(others) = 0",
        f"{label}.id = 1",
    )
    draft.whole += f" FILTER {rng.choice((*conditions, f'LAST({label}.value) > 1'))}"
    draft.at_end = rng.choice(("open", "closed"))


def _selector_beside_absence(draft: Draft) -> None:
    """A selector in one branch, an absence in the other."""
    rng, one = draft.rng, draft.type()
    after = f"({one} ; !{_absent(draft)} FOR {draft.length()})"
    word = rng.choice(("NXT", "LAST", "MAX"))
    draft.around(rng.choice((f"{after} OR {word}φ", f"{word}φ OR {after}")))
    draft.single = []
    draft.at_end = rng.choice(("open", "closed"))


def _window_around(draft: Draft) -> None:
    draft.around(f"WITHIN[{draft.length()}]φ")


SHAPES = (
    Feature("+", 0, _repeat),
    Feature(":+", 0, _repeat_contiguous),
    Feature("{m,n}", 0, _rounds),
    Feature("rounds with a condition", 0, _rounds_with_condition),
    Feature("?", 0, _optional),
    Feature("either type", 0, _either_type),
    Feature("S>R", 0, _of_stream),
    Feature("two streams", 0, _two_streams),
    Feature("selector of an operand", 0, _selector_inside),
    Feature("ALL of an operand", 0, _all_operand),
    Feature("WITHIN[] of a part", 0, _window_of_part),
    Feature(":", 0, _contiguous),
    Feature("absence between", 0, _absence_between, 2),
    Feature("FIRST", 0, _first, 2),
    Feature("rounds of FIRST", 0, _rounds_of_first, 2),
    Feature("OR", 1, _or_branch),
    Feature("AND", 1, _and_branch),
    Feature("ALL", 1, _all_branch),
    Feature("UNLESS", 1, _unless, 2),
    Feature("PROJECT", 1, _project),
    Feature("renaming", 1, _rename),
    Feature("AS of all", 1, _label_of_all),
    Feature("STRICT", 1, _strict),
    Feature("selector inside", 1, _selector_behind),
    Feature("rounds of all", 1, _repeated_whole),
    Feature("absence before", 3, _absence_before, 3),
    Feature("absence after", 3, _absence_after, 4),
    Feature("OR of absences", 3, _or_of_absences, 3),
    Feature("selector beside absence", 3, _selector_beside_absence, 2),
    Feature("WITHIN[] of all", 4, _window_around),
)
