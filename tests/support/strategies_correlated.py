"""Random queries whose conditions across events stand where an operator compares matches: in AND,
in a nested NXT or LAST, and in a longer pattern that must be absent.

Most conditions are equalities, so that matches are frequent enough; some are not, and some compare
numbers of different types.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from strategies_across import TYPES, WIDE_DECLARATION, AcrossConditions

KINDS = ("and", "nested", "absent")


def correlated_query(rng: random.Random, kind: str) -> str:
    """A query about `WIDE_DECLARATION`, with it."""
    formulas = _Formulas(rng)
    draw = {"and": formulas.both, "nested": formulas.nested, "absent": formulas.absent}
    formula = draw[kind]()
    chosen = rng.choice(("*",) * 8 + ("NXT *", "LAST *", "MAX *", "STRICT *", "ANY *", "FIRST *"))
    lines = [f"SELECT {chosen} FROM S WHERE {formula}"]
    if rng.random() < 0.2:
        lines.append(f"PARTITION BY {rng.choice(('flag', 'id'))}")
    size = rng.randint(3, 9)
    lines.append(rng.choice((f"WITHIN {size} EVENTS", f"WITHIN {size + 2} [ts]", "")))
    if rng.random() < 0.1:
        lines.append("CONSUME BY PARTITION" if "PARTITION BY" in lines[1] else "CONSUME BY ANY")
    return WIDE_DECLARATION + "\n".join(filter(None, lines)) + "\n"


class _Formulas:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.key = rng.choice(("id", "id", "name", "number", "value", "ratio", "code", "flag"))

    def conditions(self, *, look_back: bool = False) -> AcrossConditions:
        """Conditions that compare labels."""
        return AcrossConditions(self.rng, lambda x: f"{x}.value >= 2", look_back=look_back)

    def tie(self, x: str, y: str) -> str:
        """An equality, most often of the formula's key."""
        if self.rng.random() < 0.7:
            return f"{x}.{self.key} = {y}.{self.key}"
        return self.conditions().tie(x, y)

    def term(self, x: str, y: str) -> str:
        """An equality, or seldom another condition."""
        draw = self.rng.random()
        if draw < 0.7:
            return self.tie(x, y)
        if draw < 0.85:
            return self.conditions().comparison(x, y)
        return self.conditions(look_back=draw > 0.93).term([x], [y])

    # --- nested selectors -------------------------------------------------------------------------

    def nested(self) -> str:
        """A selector over events of which most have one key with the last one, and what is around
        it."""
        rng = self.rng
        labels = ("x", "y", "z")[: rng.choice((2, 2, 2, 3, 3))]
        parts = []
        for label in labels:
            name, other = rng.choice(TYPES[:3]), rng.choice(TYPES[:3])
            forms = (*[f"{name} AS {label}"] * 12, *[f"({name} OR {other}) AS {label}"] * 3)
            seldom = (f"({name} AS {label} OR {other})", f"({name} AS {label})+")
            part = rng.choice((*forms, *seldom))
            parts.append(f"({part} FILTER {label}.value >= 2)" if rng.random() < 0.15 else part)
        chain = parts[0]
        for place, part in enumerate(parts[1:]):
            chain = f"{chain}{rng.choice((' ; ',) * 15 + (' : ',))}{part}"
            if place == 0 and len(parts) == 3 and rng.random() < 0.3:
                chain = f"(({chain}) FILTER {self.term('x', 'y')})"
        ties = [self.tie(label, labels[-1]) for label in labels[:-1] if rng.random() < 0.85]
        if len(labels) == 3 and rng.random() < 0.4:
            ties[rng.randrange(len(ties) + 1) :] = [self.tie("x", "y")]
        if rng.random() < 0.2:
            ties.append(self.term(labels[-1], rng.choice(labels[:-1])))
        if ties:
            chain = f"({chain}) FILTER {' AND '.join(ties)}"
        formula = f"{rng.choice(('NXT', 'LAST', 'NXT', 'LAST', 'MAX'))}({chain})"
        other = rng.choice(TYPES[:3])
        around = rng.choice(("", "") + ("behind",) * 3 + ("before", "both", "or", "all", "rounds"))
        if around == "behind":
            formula = f"{formula} ; {other} AS u"
        elif around == "before":
            formula = f"{other} AS u ; {formula}"
        elif around == "both":
            formula = f"{formula} AND ({' ; '.join(parts)})"
        elif around == "or":
            formula = f"({formula} OR {other} AS u) ; {rng.choice(TYPES[:3])} AS v"
        elif around == "all":
            formula = f"{formula} ALL {other} AS u"
        elif around == "rounds":
            formula = f"({formula})+ ; {other} AS u"
        if rng.random() < 0.2 and "u" in formula.split("AS ")[-1:]:
            formula = f"({formula}) FILTER {self.term('u', rng.choice(labels))}"
        elif rng.random() < 0.2:
            formula = f"({formula}) FILTER {self.term(*rng.sample(labels, 2))}"
        if rng.random() < 0.1:
            formula = f"({formula}) UNLESS D"
        return formula

    # --- absent patterns --------------------------------------------------------------------------

    def absent(self) -> str:
        """A pattern that must not lie in a sequence: most often its events have one key, which is
        tied to labels of the sequence or not."""
        rng = self.rng
        labels = ("x", "y", "z")[: rng.choice((2, 2, 3))]
        parts = []
        for label in labels:
            name, other = rng.choice(TYPES[:3]), rng.choice(TYPES[:3])
            forms = (*[f"{name} AS {label}"] * 8, f"({name} OR {other}) AS {label}")
            seldom = (f"({name} AS {label} OR {other})", f"({name} AS {label})+")
            parts.append(rng.choice((*forms, *seldom)))
        pattern = self._pattern(labels)
        if rng.random() < 0.35:
            formula = f"({' ; '.join(parts)}) UNLESS ({pattern})"
        else:
            place = rng.randrange(1, len(parts))
            before, behind = " ; ".join(parts[:place]), " ; ".join(parts[place:])
            formula = f"{before} ; !({pattern}) ; {behind}"
        if rng.random() < 0.15:
            formula = f"({formula})+"
        if rng.random() < 0.1:
            formula = f"({formula}) OR (D AS x ; D AS y)"
        if rng.random() < 0.4:
            formula = f"({formula}) FILTER {self.term(*rng.sample(labels, 2))}"
        return formula

    def _pattern(self, outer: Sequence[str]) -> str:
        rng = self.rng
        labels = ("u", "v", "w")[: rng.choice((1, 2, 2, 2, 3))]
        parts = []
        for label in labels:
            name, other = rng.choice(TYPES[:3]), rng.choice(TYPES[:3])
            atom = f"{name} AS {label}"
            forms = (*[atom] * 8, f"({name} OR {other}) AS {label}", f"({atom})+")
            seldom = (f"({atom} OR {other})", f"({atom}){{1,2}}", f"({name} ; {other}) AS {label}")
            parts.append(rng.choice((*forms, *seldom)))
        joint = " : " if rng.random() < 0.05 else " ; "
        pattern = joint.join(parts)
        ties = [self._same(a, b) for a, b in pairwise(labels)]
        if len(labels) > 1 and rng.random() < 0.1:
            ties.pop()
        if rng.random() < 0.65:
            ties.append(self._same(rng.choice(outer), rng.choice(labels)))
            if rng.random() < 0.3:
                ties = [self._same(rng.choice(outer), label) for label in labels]
        if rng.random() < 0.15:
            ties.append(self.term(rng.choice(labels), rng.choice((*outer, *labels))))
        rng.shuffle(ties)
        if rng.random() < 0.2:
            pattern = f"WITHIN[{rng.randint(1, 4)} {rng.choice(('EVENTS', '[ts]'))}]({pattern})"
        if not ties:
            return pattern
        if rng.random() < 0.15:
            return f"(({pattern}) FILTER {' AND '.join(ties)})+"
        if rng.random() < 0.15:
            pattern, ties = f"({pattern}) FILTER {ties[0]}", ties[1:] or ties
        return f"({pattern}) FILTER {' AND '.join(ties)}"

    def _same(self, x: str, y: str) -> str:
        """An equality of the formula's key, but seldom."""
        if self.rng.random() < 0.9:
            return f"{x}.{self.key} = {y}.{self.key}"
        return self.conditions().tie(x, y)

    # --- AND ----------------------------------------------------------------------------------

    def both(self) -> str:
        """AND of two sides with much the same events, most often, with something around it."""
        rng = self.rng
        labels = ("x", "y", "z")[: rng.choice((2, 2, 2, 3))]
        types = [rng.choice(TYPES[:3]) for _ in labels]
        formula = f"({self._side(labels, types)} AND {self._side(labels, types)})"
        if rng.random() < 0.1:
            formula = f"({formula} AND {self._side(labels, types)})"
        other = rng.choice(TYPES[:3])
        around = rng.choice(("",) * 5 + ("behind", "before", "rounds", "or", "all", "unless"))
        if around == "behind":
            formula = f"({formula} ; {other} AS u FILTER {self.term('u', rng.choice(labels))})"
        elif around == "before":
            formula = f"({other} AS u ; {formula} FILTER {self.term(rng.choice(labels), 'u')})"
        elif around == "rounds":
            inside = f"({formula} FILTER {self.term(*rng.sample(labels, 2))})"
            formula = rng.choice((f"{formula}+", f"{inside}+", f"({other} AS u ; {formula})+"))
        elif around == "or":
            formula = f"({formula} OR {self._side(labels, types)})"
        elif around == "all":
            formula = f"({formula} ALL {other} AS u)"
        elif around == "unless":
            formula = f"({formula} UNLESS D)"
        if rng.random() < 0.2:
            formula = f"({formula} FILTER {self.term(*rng.sample(labels, 2))})"
        return formula

    def _side(self, labels: Sequence[str], types: Sequence[str]) -> str:
        """A sequence of the labels with conditions of its own, in parentheses."""
        rng = self.rng
        parts = []
        for label, name in zip(labels, types, strict=True):
            atom = f"{name} AS {label}"
            other = rng.choice(TYPES[:3])
            forms = (*[atom] * 6, f"({atom})+", f"({name} OR {other}) AS {label}")
            parts.append(rng.choice(forms))
        text = parts[0]
        for place, part in enumerate(parts[1:]):
            joint = rng.choice((" ; ",) * 6 + (" : ", " ; D ; ", "absent", "absent", "all"))
            if joint == "absent":
                tie = self.term("w", rng.choice(labels[: place + 2]))
                joint = f" ; !({rng.choice(TYPES)} AS w FILTER {tie}) ; "
            text = f"({text}) ALL ({part})" if joint == "all" else f"{text}{joint}{part}"
            if joint == " : ":
                text = f"({text})"
        for _ in range(rng.choice((0, 1, 1, 1))):
            text = f"({text}) FILTER {self.term(*rng.sample(labels, 2))}"
        if rng.random() < 0.1:
            text = f"WITHIN[{rng.randint(1, 5)} {rng.choice(('EVENTS', '[ts]'))}]({text})"
        if rng.random() < 0.1:
            text = f"({text}) UNLESS (D AS w FILTER {self.term('w', rng.choice(labels))})"
        if rng.random() < 0.1:
            text = f"(({text}) OR ({' ; '.join(parts)}))"
        if "; D ;" in text or rng.random() < 0.1:
            text = f"PROJECT[{', '.join(labels)}]({text})"
        return f"({text})"
