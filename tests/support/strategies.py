"""Random CEL queries and streams, for seeds (`random_query`, `random_stream`) and for hypothesis.

The queries are always valid, and about one declaration (`declaration_for`); which parts of the
language they use is said by a set of `Feature`s. The hypothesis strategies draw the random numbers
of the same generators, so that failing examples shrink.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from celc_runtime import CompiledQuery
from engines import interpreted, only_query
from hypothesis import strategies as st
from strategies_across import LABELS, TYPES, WIDE_DECLARATION, AcrossConditions, TiedFormulas
from strategies_aggregates import own_call, own_text
from strategies_own_functions import number_call
from strategies_quantified import Quantified
from strategies_rounds import RoundFormulas
from strategies_times import DECLARED, selected

import celc

DECLARATION = (
    "CREATE STREAM S {\n"
    + ",\n".join(
        f"  EVENT {name} {{ id: INT, value: DOUBLE, name: STRING, ts: LONG }}" for name in TYPES
    )
    + "\n}\n"
)


class Feature(enum.Enum):
    """A part of the language that generated queries may use."""

    STREAM_ATOM = "S>R"
    AS = "AS"
    THEN = ";"
    CONTIGUOUS = ":"
    REPEAT = "+"
    REPEAT_CONTIGUOUS = ":+"
    OR = "OR"
    RENAME = "[x -> y]"
    PROJECT = "PROJECT"
    FILTER = "FILTER with clauses on one label each"
    OR_ACROSS = "clauses that join conditions on several labels"
    CORRELATION = "comparisons across labels"
    OUTER = "filters on labels bound outside what they filter"
    PREV = "PREV"
    PRIOR = "PRIOR"
    AGGREGATE = "aggregates in conditions"
    AND = "AND"
    ALL = "ALL"
    UNLESS = "UNLESS"
    NOT_BETWEEN = "; ! ;"
    SELECTOR = "selectors in formulas"
    LOCAL_WINDOW = "WITHIN[…](φ)"
    NOT_BEFORE = "!φ FOR d ; φ"
    NOT_AFTER = "φ ; !φ FOR d"
    SELECT_LABELS = "SELECT of labels"
    SELECT_NONE = "SELECT NONE"
    SELECT_EXPRESSIONS = "SELECT of expressions"
    TOP_SELECTOR = "SELECT with a selector"
    ANY = "SELECT ANY"
    PER_START = "SELECT FIRST or LONGEST, always"
    PARTITION_BY = "PARTITION BY"
    WITHIN_EVENTS = "WITHIN n EVENTS"
    WITHIN_ATTRIBUTE = "WITHIN n [ts]"
    CONSUME_BY = "CONSUME BY"
    LIMIT = "LIMIT"
    N_ARY = "conditions of which most compare several labels, in every way"
    KEYS = "formulas whose labels are tied by equality"
    LOOK_BACK = "PREV, PRIOR and aggregates compared with anything"
    COUNTED = "{m,n}"
    COUNTED_CONTIGUOUS = ":{m,n}"
    OPTIONAL = "?"
    TYPE_TEST = "IS R"
    DISTANCE = "PREV(x.a, k)"
    ROUNDS = "iterations whose rounds are compared with labels from outside"
    TIMES = "times and durations in conditions and in SELECT"
    QUANTIFIED = "SOME and EVERY"
    FUNCTIONS = "functions of one's own"
    THEN_FIRST = "; FIRST φ"
    OWN = "aggregates of the file, VARIANCE, STDDEV, MEDIAN and COUNT(DISTINCT …)"


REGULAR_OPERATORS = frozenset(
    {
        Feature.STREAM_ATOM,
        Feature.AS,
        Feature.THEN,
        Feature.CONTIGUOUS,
        Feature.REPEAT,
        Feature.REPEAT_CONTIGUOUS,
        Feature.OR,
        Feature.RENAME,
        Feature.PROJECT,
        Feature.FILTER,
        Feature.OR_ACROSS,
    }
)
SELECT_FORMS = frozenset({Feature.SELECT_LABELS, Feature.SELECT_NONE})
CLAUSES = frozenset(
    {
        Feature.PARTITION_BY,
        Feature.WITHIN_EVENTS,
        Feature.WITHIN_ATTRIBUTE,
        Feature.CONSUME_BY,
    }
)
REGULAR = REGULAR_OPERATORS | SELECT_FORMS | CLAUSES
# The shorter ways to write; a run of their own dwells on them.
SHORTER = frozenset(
    {
        Feature.COUNTED,
        Feature.COUNTED_CONTIGUOUS,
        Feature.OPTIONAL,
        Feature.TYPE_TEST,
        Feature.DISTANCE,
    }
)
# Formulas with windows inside, and little else that the listing has to decide.
LOCAL_WINDOWS = (
    REGULAR
    | SHORTER
    | {
        *(Feature.AND, Feature.ALL, Feature.UNLESS, Feature.NOT_BETWEEN, Feature.LOCAL_WINDOW),
        *(Feature.SELECTOR, Feature.TOP_SELECTOR, Feature.ANY, Feature.CORRELATION, Feature.OUTER),
    }
)
# What dwells on comparisons across labels, and is about a wider declaration.
DWELLING = frozenset(
    {
        *(Feature.N_ARY, Feature.KEYS, Feature.LOOK_BACK, Feature.ROUNDS, Feature.TIMES),
        Feature.OWN,
        Feature.FUNCTIONS,
        Feature.QUANTIFIED,
    }
)
# Windows inside a formula, absences at its ends, and one match for each start have sets of their
# own: seeds draw the queries that they always drew.
OF_TIME = frozenset({Feature.LOCAL_WINDOW, Feature.NOT_BEFORE, Feature.NOT_AFTER})
_OF_THEIR_OWN = {Feature.PER_START, Feature.THEN_FIRST}
EVERYTHING = frozenset(Feature) - DWELLING - SHORTER - OF_TIME - _OF_THEIR_OWN
# Everything but the functions of what lies before; facts such as COUNT(x) > 1 come with N_ARY.
ACROSS = (EVERYTHING | {Feature.N_ARY, Feature.KEYS}) - {
    Feature.PREV,
    Feature.PRIOR,
    Feature.AGGREGATE,
    Feature.SELECT_EXPRESSIONS,
    Feature.LIMIT,
}
LOOKING_BACK = ACROSS | {Feature.LOOK_BACK, Feature.PREV, Feature.PRIOR, Feature.AGGREGATE}
OF_QUANTIFIED = LOOKING_BACK | SHORTER | {Feature.QUANTIFIED, Feature.LOCAL_WINDOW}
OF_ROUNDS = LOOKING_BACK | {Feature.ROUNDS}
OF_TIMES = (LOOKING_BACK | {Feature.TIMES, Feature.SELECT_EXPRESSIONS, Feature.LOCAL_WINDOW}) - {
    Feature.LIMIT
}
# A declaration of each aggregate that the queries call stands before them (`own_declarations`).
OF_AGGREGATES = (LOOKING_BACK | {Feature.OWN, Feature.SELECT_EXPRESSIONS}) - {Feature.LIMIT}
# The same with `strategies_own_functions.DECLARATIONS`.
OF_FUNCTIONS = (LOOKING_BACK | {Feature.FUNCTIONS, Feature.SELECT_EXPRESSIONS}) - {Feature.LIMIT}


def random_query(rng: random.Random, features: frozenset[Feature] = REGULAR, depth: int = 3) -> str:
    """The text of a file with one query that nests operators at most `depth` deep.

    With PARTITION BY and CONSUME BY ANY together, the answer depends on the order of the whole
    stream, ties in `ts` included.
    """
    return declaration_for(features) + _Generator(rng, features).query(depth)


def compiled_queries(rng: random.Random) -> Iterator[CompiledQuery]:
    """Random queries that are not too large, of regular and of all features, without an end.

    They are interpreted; their streams have a column `row` that tells events of one time apart.
    """
    while True:
        text = random_query(rng, rng.choice([REGULAR, EVERYTHING]))
        try:
            with interpreted():
                query = only_query(celc.compile(text, order_by="ts", tiebreak="row"))
        except celc.CelError:
            continue
        yield query


def declaration_for(features: frozenset[Feature]) -> str:
    """The declaration that queries with these features are about."""
    if Feature.TIMES in features:
        return WIDE_DECLARATION.replace("day: DATE", f"day: DATE, {DECLARED}")
    return WIDE_DECLARATION if features & DWELLING else DECLARATION


def random_stream(
    rng: random.Random, length: int, *, nulls: float = 0.1, strangers: float = 0.0
) -> list[dict[str, Any]]:
    """A stream of `length` events; `ts` never decreases, never is NULL and can stand still.

    Every other attribute is NULL with probability `nulls`. With probability `strangers` an event
    has a type that is not declared, and so has no position.
    """

    def attribute(values: Sequence[Any]) -> Any:
        return None if _chance(rng, nulls) else rng.choice(values)

    events: list[dict[str, Any]] = []
    ts = 0
    for _ in range(length):
        ts += rng.choice((1, 0, 2, 1, 3))
        events.append(
            {
                "type": "Stranger" if _chance(rng, strangers) else rng.choice(TYPES),
                "id": attribute((1, 2, 1, 2, 3, 0)),
                "value": attribute((1.0, 2.0, 3.0, 4.0, 2.5, 0.0)),
                "name": attribute(("p", "q", "r", "pq")),
                "ts": ts,
            }
        )
    return events


def with_alternatives(rng: random.Random, declaration: str, body: str) -> tuple[str, str]:
    """The declaration and the query with a key that is `src` or `dst`, by the type of the event."""
    type_ = rng.choice(("INT", "INT", "STRING"))
    attributes = ["src", "dst", *(rng.choice(("src", "dst")) for _ in TYPES[2:])]
    rng.shuffle(attributes)
    for name, attribute in zip(TYPES, attributes, strict=True):
        event = f"EVENT {name} {{ "
        declaration = declaration.replace(event, f"{event}{attribute}: {type_}, ")
    before, by, after = body.partition("PARTITION BY ")
    keys, line, rest = after.partition("\n")
    chosen = rng.choice(("[src, dst]", "[dst, src]"))
    keys = rng.choice((chosen, chosen, f"{chosen}, name", f"{keys}, {chosen}"))
    return declaration, f"{before}{by}{keys}{line}{rest}"


def with_chosen_keys(
    rng: random.Random, events: list[dict[str, Any]], type_: str
) -> list[dict[str, Any]]:
    """Events with values for `src` and `dst`, also where their type has no such attribute."""
    few: Sequence[Any] = rng.choice(((1, 2), (1, 1, 1, 2), (0, 1, 2, None)))
    if type_ == "STRING":
        few = [None if number is None else "pqr"[number] for number in few]
    for event in events:
        event["src"], event["dst"] = rng.choice(few), rng.choice(few)
    return events


def queries(features: frozenset[Feature] = REGULAR, depth: int = 3) -> st.SearchStrategy[str]:
    """`random_query`, drawn by hypothesis."""
    return st.randoms(use_true_random=False).map(lambda rng: random_query(rng, features, depth))


@st.composite
def streams(draw: st.DrawFn, max_length: int = 8, strangers: float = 0.0) -> list[dict[str, Any]]:
    """`random_stream` of at most `max_length` events, drawn by hypothesis."""
    length = draw(st.integers(min_value=0, max_value=max_length))
    rng = draw(st.randoms(use_true_random=False))
    return random_stream(rng, length, strangers=strangers)


def _chance(rng: random.Random, probability: float) -> bool:
    # Written so that hypothesis, which shrinks towards 0.0, shrinks towards "no".
    return rng.random() >= 1 - probability


class _Level(enum.IntEnum):
    """How tightly a formula's outermost operator binds."""

    ENDED = 0  # by FILTER or UNLESS
    OR = 1
    AND = 2
    SEQUENCE = 3
    POSTFIX = 4


@dataclass(frozen=True)
class _Piece:
    """The text of a formula, and the labels that its matches can bind."""

    text: str
    level: _Level
    bound: frozenset[str]

    def at(self, level: _Level) -> str:
        """The text, in parentheses where its operator binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    def parenthesized(self) -> str:
        """The text in parentheses."""
        return f"({self.text})"


_Words = frozenset[str]


class _Generator:
    """The choices of one query."""

    def __init__(self, rng: random.Random, features: frozenset[Feature]) -> None:
        self.rng = rng
        self.features = features
        self.conditions = _ConditionGenerator(rng, features)
        # Few types in one query make its parts meet on the same events.
        self.types = rng.sample(TYPES, rng.choice((4, 3, 3, 2, 2)))
        self.tied = TiedFormulas(rng, self.types, self.conditions.across_labels)
        self.ends_late = self.needs_window = False
        self.rounds = RoundFormulas(rng, self.types, self.conditions.across_labels)

    def has(self, feature: Feature) -> bool:
        """Whether the query may use the feature."""
        return feature in self.features

    # --- clauses ---

    def query(self, depth: int) -> str:
        """SELECT … and all that follows."""
        rng = self.rng
        if self.has(Feature.ROUNDS) and _chance(rng, 0.8):
            formula = self.in_rounds(Feature.ROUNDS, depth, frozenset())
        elif self.has(Feature.KEYS) and _chance(rng, 0.45):
            formula = self.keyed(Feature.KEYS, depth, frozenset())
        else:
            formula = self.formula(depth, frozenset())
        if self.has(Feature.NOT_AFTER) and _chance(rng, 0.9):
            formula = self.with_end(formula)
        if self.has(Feature.N_ARY) and "FILTER" not in formula.text and _chance(rng, 0.9):
            formula = self.with_condition(formula, frozenset())
        lines = [f"SELECT {self.selector()}{self.items(sorted(formula.bound))}"]
        lines += [] if _chance(rng, 0.1) else ["FROM S"]
        lines += [f"WHERE {formula.text}"]
        partitioned = self.has(Feature.PARTITION_BY) and _chance(rng, 0.3)
        if partitioned:
            by = rng.choice(("id", "name", "id, name", "[id]"))
            if self.has(Feature.TIMES) and _chance(rng, 0.3):
                by = rng.choice(("took", "took, id"))
            lines.append(f"PARTITION BY {by}")
        windows = []
        if self.has(Feature.WITHIN_EVENTS):
            windows.append(f"WITHIN {rng.choice((3, 2, 4, 5, 1, 0))} EVENTS")
        if self.has(Feature.WITHIN_ATTRIBUTE):
            windows.append(f"WITHIN {rng.choice((4, 3, 6, 8, 2, 0))} [ts]")
        if windows and (self.needs_window or _chance(rng, 0.4)):
            lines.append(rng.choice(windows))
        # LONGEST and DISJOINT know a match only after its end.
        late = self.ends_late or "LONGEST" in lines[0] or "DISJOINT" in lines[0]
        if not late and self.has(Feature.CONSUME_BY) and _chance(rng, 0.3):
            by = rng.choice(("ANY", "NONE", "PARTITION") if partitioned else ("ANY", "NONE"))
            lines.append(f"CONSUME BY {by}")
        if self.has(Feature.LIMIT) and _chance(rng, 0.3):
            lines.append(f"LIMIT {rng.randint(1, 3)}")
        return "\n".join(lines) + "\n"

    def selector(self) -> str:
        if self.has(Feature.PER_START):
            return self.rng.choice(("FIRST ", "LONGEST ")) + self.rng.choice(("", "DISJOINT "))
        words = [""]
        if self.has(Feature.TOP_SELECTOR):
            words += ["STRICT ", "NXT ", "LAST ", "MAX ", "NEXT ", "ALL "]
        if self.has(Feature.ANY):
            words += ["ANY "]
        return self.rng.choice(words)

    def items(self, labels: Sequence[str]) -> str:
        rng = self.rng
        forms = ["*", "*"]
        forms += ["NONE"] if self.has(Feature.SELECT_NONE) else []
        forms += ["labels"] * 2 if self.has(Feature.SELECT_LABELS) else []
        forms += ["expressions"] if self.has(Feature.SELECT_EXPRESSIONS) else []
        form = rng.choice(forms)
        if form in ("*", "NONE"):
            return form
        items = []
        for label in rng.sample(labels, rng.randint(1, min(3, len(labels)))):
            attributes = rng.sample(("id", "value", "name", "ts"), rng.randint(1, 3))
            items.append(f"{label}[{', '.join(attributes)}]" if _chance(rng, 0.3) else label)
        if form == "expressions":
            items += [self.expression(labels, number) for number in range(rng.randint(1, 2))]
        return ", ".join(items)

    def expression(self, labels: Sequence[str], number: int) -> str:
        label = self.rng.choice(labels)
        if self.has(Feature.TIMES) and _chance(self.rng, 0.6):
            return f"{selected(self.rng, label, self.rng.choice(labels))} AS value_{number}"
        if self.has(Feature.FUNCTIONS) and _chance(self.rng, 0.7):
            other = self.rng.choice(labels)
            call = self.rng.choice(
                (
                    number_call(self.rng, label, other, prior=False),
                    f"fn_near({label}.id, {other}.id)",
                )
            )
            return f"{call} AS value_{number}"
        if self.has(Feature.OWN) and _chance(self.rng, 0.7):
            call = own_text if _chance(self.rng, 0.25) else own_call
            return f"{call(self.rng, label, prior=False)} AS value_{number}"
        if _chance(self.rng, 0.25):
            function = self.rng.choice(("FIRST", "LAST", "COLLECT"))
            attribute = self.rng.choice(("name", "value", "id"))
            return f"{function}({label}.{attribute}) AS value_{number}"
        return f"{self.number(labels, self.rng.randint(0, 2))} AS value_{number}"

    def number(self, labels: Sequence[str], depth: int) -> str:
        """An expression of SELECT that is a number."""
        rng = self.rng
        if depth and _chance(rng, 0.8):
            left, right = self.number(labels, depth - 1), self.number(labels, depth - 1)
            forms = [f"({left} {operator} {right})" for operator in "+-*/%"]
            return rng.choice([*forms, f"ABS({left})", f"-({left})"])
        if depth and _chance(rng, 0.5):
            return rng.choice(("2", "-3", "0", "0.5", "2147483647", "NULL * 2"))
        label = rng.choice(labels)
        function = rng.choice(("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT"))
        if function == "COUNT":
            return f"COUNT({label})"
        return f"{function}({label}.{rng.choice(('value', 'id', 'ts'))})"

    # --- formulas ---

    def with_end(self, body: _Piece) -> _Piece:
        """A formula with an absence at its end, perhaps in an OR, and with something around it."""
        rng, piece = self.rng, self.not_after(body)
        if _chance(rng, 0.3):
            other = self.formula(1, frozenset())
            other = self.not_after(other) if _chance(rng, 0.5) else other
            sides = [piece, other] if _chance(rng, 0.5) else [other, piece]
            text = " OR ".join(side.at(_Level.AND) for side in sides)
            piece = _Piece(text, _Level.OR, piece.bound | other.bound)
        around = rng.random()
        if around < 0.2:
            return self.with_condition(piece, frozenset())
        if around < 0.3:
            text = f"WITHIN[{self.window()}]{piece.parenthesized()}"
            return _Piece(text, _Level.POSTFIX, piece.bound)
        if around < 0.35:
            return self.with_label(piece)
        return piece

    def not_after(self, body: _Piece) -> _Piece:
        absent = self.formula(self.rng.choice((0, 0, 1)), body.bound)
        length = f" FOR {self.window()}" if _chance(self.rng, 0.7) else ""
        self.ends_late, self.needs_window = True, self.needs_window or not length
        text = f"{body.at(_Level.SEQUENCE)} ; !{absent.at(_Level.POSTFIX)}{length}"
        # In a longer sequence it needs parentheses.
        return _Piece(text, _Level.AND, body.bound)

    def formula(self, depth: int, visible: _Words) -> _Piece:
        """A formula whose filters may look at the `visible` labels, bound in scopes around it."""
        F = Feature  # noqa: N806
        makers = {
            F.THEN: self.sequence,
            F.CONTIGUOUS: self.sequence,
            F.NOT_BETWEEN: self.not_between,
            F.REPEAT: self.repeat,
            F.REPEAT_CONTIGUOUS: self.repeat,
            F.COUNTED: self.counted,
            F.COUNTED_CONTIGUOUS: self.counted,
            F.OPTIONAL: self.with_options,
            F.FILTER: self.filtered,
            F.OR: self.either,
            F.AS: self.labelled,
            F.PROJECT: self.project,
            F.RENAME: self.rename,
            F.AND: self.both,
            F.ALL: self.sequence,
            F.UNLESS: self.unless,
            F.SELECTOR: self.selected,
            F.LOCAL_WINDOW: self.within,
            F.NOT_BEFORE: self.not_before,
            F.KEYS: self.keyed,
            F.ROUNDS: self.in_rounds,
            F.THEN_FIRST: self.then_first,
        }
        weights = {F.THEN: 5, F.REPEAT: 2, F.FILTER: 4, F.OR: 2, F.KEYS: 2, F.ROUNDS: 4}
        weights |= {F.COUNTED: 3, F.OPTIONAL: 4, F.NOT_BEFORE: 8, F.THEN_FIRST: 12}
        usable = [feature for feature in makers if self.has(feature)]
        if depth == 0 or not usable or not _chance(self.rng, 0.9):
            return self.atom()
        choices = [feature for feature in usable for _ in range(weights.get(feature, 1))]
        feature = self.rng.choice(choices)
        return makers[feature](feature, depth - 1, visible)

    def atom(self) -> _Piece:
        rng = self.rng
        name = rng.choice(self.types)
        text = f"S>{name}" if self.has(Feature.STREAM_ATOM) and _chance(rng, 0.15) else name
        piece = _Piece(text, _Level.POSTFIX, frozenset([name]))
        return self.with_label(piece) if self.has(Feature.AS) and _chance(rng, 0.5) else piece

    def with_label(self, piece: _Piece) -> _Piece:
        """`piece AS x`, x most often a label that the piece does not have."""
        new = [label for label in LABELS if label not in piece.bound]
        label = self.rng.choice(new if new and not _chance(self.rng, 0.1) else LABELS)
        word = "IN" if _chance(self.rng, 0.05) else "AS"
        text = f"{piece.at(_Level.POSTFIX)} {word} {label}"
        return _Piece(text, _Level.POSTFIX, piece.bound | {label})

    def labelled(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        return self.with_label(self.formula(depth, visible))

    def sides(self, depth: int, visible: _Words) -> tuple[_Piece, _Piece]:
        """Two formulas, left and right; the one that is made later sees the other's labels."""
        first = self.formula(depth, visible)
        second = self.formula(depth, visible | first.bound)
        return (second, first) if _chance(self.rng, 0.3) else (first, second)

    def sequence(self, feature: Feature, depth: int, visible: _Words) -> _Piece:
        """`φ ; φ`, `φ : φ` or `φ ALL φ`; one side's filters may look at the other's labels."""
        left, right = self.sides(depth, visible)
        level = _Level.AND if feature is Feature.ALL else _Level.SEQUENCE
        # One level to the left: equally tight on the left needs no parentheses.
        text = f"{left.at(level)} {feature.value} {right.at(_Level(level + 1))}"
        return _Piece(text, level, left.bound | right.bound)

    def not_between(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        left, right = self.sides(depth, visible)
        bound = left.bound | right.bound
        absent = self.formula(min(depth, 1), visible | bound)
        level = _Level.SEQUENCE
        text = f"{left.at(level)} ; !{absent.at(_Level.POSTFIX)} ; {right.at(_Level.POSTFIX)}"
        return _Piece(text, level, bound)

    def repeat(self, feature: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        return _Piece(body.at(_Level.POSTFIX) + feature.value, _Level.POSTFIX, body.bound)

    def counted(self, feature: Feature, depth: int, visible: _Words) -> _Piece:
        rng = self.rng
        body = self.formula(depth, visible)
        least, most = sorted((rng.choice((1, 2, 2, 3)), rng.choice((1, 2, 3))))
        bounds = rng.choice((f"{most}", f"{least},{most}", f"{least},", f",{most}"))
        colon = ":" if feature is Feature.COUNTED_CONTIGUOUS else ""
        text = f"{body.at(_Level.POSTFIX)}{colon}{{{bounds}}}"
        return _Piece(text, _Level.POSTFIX, body.bound)

    def with_options(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        """A sequence of a few operands, some of which may be missing, perhaps with an absence."""
        rng = self.rng
        optional = rng.choice(((True, False), (False, True), (False, True, False)) * 2 + _OPTIONAL)
        joint = rng.choice((";", ";", ":"))
        parts, bound = list[_Piece](), frozenset[str]()
        for _at in optional:
            parts.append(self.formula(depth - 1 if depth else 0, visible | bound))
            bound |= parts[-1].bound
        level = _Level.POSTFIX
        text = ""
        for at, (part, is_optional) in enumerate(zip(parts, optional, strict=True)):
            is_free = at and not optional[at - 1] and not is_optional
            if is_free and self.has(Feature.NOT_BETWEEN) and _chance(rng, 0.5):
                text += f" ; !{self.formula(0, visible | bound).at(level)} ; "
            elif is_free and _chance(rng, 0.5):
                # Only beside an operand that may be missing the signs must be the same.
                text += rng.choice((" ; ", " : "))
            elif at:
                text += f" {joint} "
            text += f"{part.at(level)}{'?' if is_optional else ''}"
        # In a longer sequence, other signs could follow the last operand.
        return _Piece(text, _Level.AND, bound)

    def either(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        left, right = self.formula(depth, visible), self.formula(depth, visible)
        text = f"{left.at(_Level.OR)} OR {right.at(_Level.AND)}"
        return _Piece(text, _Level.OR, left.bound | right.bound)

    def both(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        """`φ AND φ`; most often the right side is a variant of the left, so that both can match."""
        left = self.formula(depth, visible)
        right = self.formula(depth, visible)
        if _chance(self.rng, 0.8):
            text = f"{left.parenthesized()} OR {right.at(_Level.AND)}"
            right = _Piece(text, _Level.OR, left.bound | right.bound)
            if self.has(Feature.FILTER) and _chance(self.rng, 0.5):
                condition = self.conditions.condition(left.bound, frozenset())
                text = f"{left.at(_Level.OR)} FILTER {condition}"
                right = _Piece(text, _Level.ENDED, left.bound)
        text = f"{left.at(_Level.AND)} AND {right.at(_Level.SEQUENCE)}"
        return _Piece(text, _Level.AND, left.bound | right.bound)

    def unless(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        left = self.formula(depth, visible)
        right = self.formula(min(depth, 1), visible | left.bound)
        text = f"{left.at(_Level.OR)} UNLESS {right.at(_Level.POSTFIX)}"
        return _Piece(text, _Level.ENDED, left.bound)

    def filtered(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        return self.with_condition(self.formula(depth, visible), visible)

    def with_condition(self, body: _Piece, visible: _Words) -> _Piece:
        condition = self.conditions.condition(body.bound, visible)
        return _Piece(f"{body.at(_Level.OR)} FILTER {condition}", _Level.ENDED, body.bound)

    def project(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        labels = sorted(body.bound)
        kept = self.rng.sample(labels, self.rng.randint(1, len(labels)))
        text = f"PROJECT[{', '.join(kept)}]{body.parenthesized()}"
        return _Piece(text, _Level.POSTFIX, frozenset(kept))

    def rename(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        old = self.rng.choice(sorted(body.bound))
        new = self.rng.choice([label for label in LABELS if label != old])
        text = f"{body.at(_Level.POSTFIX)}[{old} -> {new}]"
        return _Piece(text, _Level.POSTFIX, (body.bound - {old}) | {new})

    def selected(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        word = self.rng.choice(("STRICT", "NXT", "LAST", "MAX", "NEXT"))
        return _Piece(f"{word}{body.parenthesized()}", _Level.POSTFIX, body.bound)

    def within(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        text = f"WITHIN[{self.window()}]{body.parenthesized()}"
        return _Piece(text, _Level.POSTFIX, body.bound)

    def not_before(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        body = self.formula(depth, visible)
        absent = self.formula(min(depth, 1), visible | body.bound)
        text = f"!{absent.at(_Level.POSTFIX)} FOR {self.window()} ; {body.at(_Level.SEQUENCE)}"
        # In a sequence it needs parentheses, unless it comes first.
        return _Piece(text, _Level.AND, body.bound)

    def window(self) -> str:
        """The size of a window inside a formula, or the length of an absence."""
        sizes = (2, 1, 3, 4, 0, 6)
        forms: tuple[str, ...] = ("{} EVENTS", "{} [ts]", "{} [ts]")
        if self.has(Feature.TIMES):
            forms += ("{} SECONDS [clock]", "{} MILLISECONDS [clock]")
        return self.rng.choice(forms).format(self.rng.choice(sizes))

    def keyed(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        text, bound = self.tied.formula()
        return _Piece(text, _Level.POSTFIX, bound)

    def then_first(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        """`φ ; FIRST ψ` in all its forms. Conditions of ψ may name labels to the left."""
        rng = self.rng
        left = self.formula(depth, visible)
        seen = left.bound | (visible if _chance(rng, 0.2) else frozenset())
        body = self.chosen_first(min(depth, 1), seen, left)
        if _chance(rng, 0.25):
            # With one label on both sides PREV looks back over the left one.
            left = self.with_label(self.atom())
            label = rng.choice(sorted(left.bound - {*TYPES}))
            name = rng.choice(self.types)
            condition = self.conditions.back_to(label)
            text = f"({name} AS {label} FILTER {condition})"
            body = _Piece(text, _Level.POSTFIX, frozenset({name, label}))
        chosen, level = body.at(_Level.POSTFIX), _Level.SEQUENCE
        bound = left.bound | body.bound
        form = rng.random()
        if form < 0.4:
            text = f"FIRST {chosen}"
        elif form < 0.7:
            absent = ""
            if _chance(rng, 0.3):
                absent = f"!{self.formula(0, bound).at(_Level.POSTFIX)} ; "
            rounds = rng.choice(("+", "+", "{2}", "{1,2}", "{2,}", "{,2}", ""))
            text = f"({absent}FIRST {chosen}){rounds}"
        elif form < 0.85:
            rounds = rng.choice(("", "", "+", "{2}", "{1,2}"))
            text = f"(FIRST {chosen}){rounds}" if rounds else f"FIRST {chosen}"
            text = f"!{self.chosen_first(0, bound, left, body).at(_Level.POSTFIX)} ; {text}"
        else:
            last = self.formula(0, visible | bound)
            first = rng.choice(("", "FIRST "))
            text = f"(FIRST {chosen})? ; {first}{last.at(_Level.POSTFIX)}"
            bound, level = bound | last.bound, _Level.AND
        return _Piece(f"{left.at(_Level.SEQUENCE)} ; {text}", level, bound)

    def chosen_first(self, depth: int, seen: _Words, *beside: _Piece) -> _Piece:
        """A formula that is often compared with one of those beside it."""
        left = self.rng.choice(beside)
        body = self.formula(self.rng.randint(0, depth), seen)
        if not _chance(self.rng, 0.6):
            return body
        if self.has(Feature.CORRELATION) and _chance(self.rng, 0.6):
            x, y = self.rng.choice(sorted(body.bound)), self.rng.choice(sorted(left.bound))
            text = f"{body.at(_Level.OR)} FILTER {self.conditions.across(x, y)}"
            return _Piece(text, _Level.ENDED, body.bound)
        return self.with_condition(body, seen)

    def in_rounds(self, _: Feature, depth: int, visible: _Words) -> _Piece:
        text, bound = self.rounds.formula()
        return _Piece(text, _Level.POSTFIX, bound)


# Which operands of a sequence may be missing.
_OPTIONAL = (
    (True, False, True),
    (False, True, True, False),
    (False, False, True),
    (True, False, False),
    (False, True, False, True, False),
)


class _ConditionGenerator:
    """The conditions of one query."""

    def __init__(self, rng: random.Random, features: frozenset[Feature]) -> None:
        self.rng = rng
        self.features = features
        look_back = Feature.LOOK_BACK in features
        self.across_labels = AcrossConditions(
            rng,
            self.unary,
            look_back=look_back,
            times=Feature.TIMES in features,
            own=Feature.OWN in features,
            functions=Feature.FUNCTIONS in features,
        )

    def condition(self, own: Iterable[str], visible: Iterable[str]) -> str:
        """A condition on labels of the filtered formula; with OUTER on `visible` labels too."""
        if Feature.QUANTIFIED in self.features and _chance(self.rng, 0.7):
            return Quantified(self.rng, self.plain).condition(own, visible)
        return self.plain(own, visible)

    def plain(self, own: Iterable[str], visible: Iterable[str]) -> str:
        """The same without SOME and EVERY."""
        rng = self.rng
        if Feature.N_ARY in self.features and _chance(rng, 0.8):
            seen = visible if Feature.OUTER in self.features else ()
            return self.across_labels.condition(own, seen)
        # Labels made with AS first: type names are rarer in filters.
        labels = sorted(own, key=lambda label: (label in TYPES, label))
        others = sorted(set(visible) - set(labels)) if Feature.OUTER in self.features else []
        terms = [self.term(labels, others) for _ in range(rng.choice((1, 1, 1, 2)))]
        return " AND ".join(terms)

    def label(self, labels: Sequence[str]) -> str:
        made = [label for label in labels if label not in TYPES]
        return self.rng.choice(made if made and not _chance(self.rng, 0.2) else labels)

    def term(self, labels: Sequence[str], others: Sequence[str]) -> str:
        """A conjunct."""
        rng = self.rng
        F = Feature  # noqa: N806
        x = self.label(labels)
        forms = [self.unary, self.unary]
        if others and _chance(rng, 0.6):
            y = rng.choice(others)
            return rng.choice((self.across(x, y), self.across(x, y), self.unary(y)))
        forms += [self.previous] if F.PREV in self.features else []
        forms += [self.at_distance] * 2 if F.DISTANCE in self.features else []
        forms += [self.type_test] * 2 if F.TYPE_TEST in self.features else []
        forms += [self.prior] if F.PRIOR in self.features else []
        forms += [self.aggregate] if F.AGGREGATE in self.features else []
        first = rng.choice(forms)(x)
        if len(labels) == 1 or not _chance(rng, 0.5):
            return first
        y = self.label([label for label in labels if label != x])
        across = []
        if F.OR_ACROSS in self.features:
            second, third = self.unary(y), self.unary(x)
            across += [
                f"({first} OR {second})",
                f"NOT ({first} AND {second})",
                f"(({first} AND {second}) OR {third})",
            ]
        if F.CORRELATION in self.features:
            across += [self.across(x, y), self.across(x, y), f"NOT {self.across(x, y)}"]
            across += [f"({self.across(x, y)} OR {first})"]
        return rng.choice(across) if across else first

    def unary(self, x: str) -> str:
        """A condition that names x alone."""
        rng = self.rng
        if _chance(rng, 0.3):
            first, second = self.comparison(f"{x}."), self.comparison(f"{x}.")
            return rng.choice(
                (
                    f"NOT {first}",
                    f"({first} OR {second})",
                    f"{x}[{self.comparison('')} OR {self.comparison('')}]",
                    f"{x}[{self.comparison('')} AND NOT {self.comparison('')}]",
                    f"NOT ({first} AND {second})",
                    f"NOT ({first} OR NOT {second})",
                )
            )
        return self.comparison(f"{x}.")

    def comparison(self, of: str) -> str:
        """A comparison of attributes with constants; `of` is what stands before an attribute."""
        rng = self.rng
        number = f"{of}{rng.choice(('value', 'value', 'id', 'id', 'ts'))}"
        low, high = sorted((rng.randint(0, 4), rng.randint(0, 4)))
        negation = "NOT " if _chance(rng, 0.3) else ""
        operator = rng.choice((">", "<=", "=", "<", ">=", "<>", "==", "!="))
        constant = rng.choice(("2", "1", "3", "0", "2.5", "1e0"))
        weak = rng.choice((f"> {rng.choice((0, 1))}", "<= 3", "< 3.5", ">= 1", "<> 2", "!= 1"))
        text = rng.choice(("'p'", "'q'", "'pq'", "'r'"))
        pattern = rng.choice(("'p%'", "'%q'", "'p_'", "'_'", "'%'", "'pq'", "'\\%%'"))
        regex = rng.choice(("'^p'", "'q$'", "'p|r'", "'[pq]+'", "'.q'", "'^$'"))
        forms = (
            f"{number} {weak}",
            f"{number} {weak}",
            f"{number} {operator} {constant}",
            f"{number} {operator} {constant}",
            f"{constant} {operator} {number}",
            f"{of}name {operator} {text}",
            f"{of}name {negation}IN ('p', {text})",
            f"{number} {negation}IN ({low}, {high}{', NULL' if _chance(rng, 0.2) else ''})",
            f"{of}id {negation}IN {{{low}, {high}}}",
            f"{of}name {negation}LIKE {pattern}",
            f"{of}name {negation}RLIKE {regex}",
            f"{number} {negation}BETWEEN {low} AND {high}",
            f"{of}{rng.choice(('value', 'name', 'id'))} IS {negation}NULL",
            f"{self.arithmetic(of)} {operator} {constant}",
            f"{self.arithmetic(of)} {operator} {self.arithmetic(of)}",
        )
        return rng.choice(forms)

    def arithmetic(self, of: str) -> str:
        rng = self.rng
        return rng.choice(
            (
                f"{of}value + 1",
                f"2 * {of}id",
                f"{of}value / {of}id",
                f"{of}value % 2",
                f"{of}id % {of}id",
                f"ABS({of}value - 3)",
                f"({of}value - {of}id) * 2",
                f"{of}ts - {of}id",
                f"{of}ts / 2",
            )
        )

    def across(self, x: str, y: str) -> str:
        """A comparison that names both labels."""
        operator = self.rng.choice(("=", "<", ">=", "<>"))
        return self.rng.choice(
            (
                f"{x}.id = {y}.id",
                f"{x}.value {operator} {y}.value",
                f"{x}.name {operator} {y}.name",
                f"{x}.value * 2 >= {y}.value + {y}.id",
                f"{y}.ts - {x}.ts < 4",
                f"{x}.value BETWEEN {y}.id AND {y}.value",
                f"{x}.id IN ({y}.id, {y}.value)",
            )
        )

    def previous(self, x: str) -> str:
        return self.rng.choice(
            (
                f"{x}.value >= PREV({x}.value)",
                f"{x}.value - PREV({x}.value) > 0",
                f"PREV({x}.id) = {x}.id",
                f"NOT {x}.name = PREV({x}.name)",
                f"({x}.value > 3 OR {x}.value < PREV({x}.value))",
                f"PREV({x}.value) IS NULL",
            )
        )

    def back_to(self, x: str) -> str:
        """A condition that looks back from a position of x."""
        forms = [self.previous, self.previous, self.at_distance, self.prior]
        return self.rng.choice(forms)(x)

    def at_distance(self, x: str) -> str:
        k = self.rng.choice((1, 2, 2, 3))
        return self.rng.choice(
            (
                f"{x}.value >= PREV({x}.value, {k})",
                f"PREV({x}.id, {k}) = {x}.id",
                f"PREV({x}.value, {k}) > PREV({x}.value)",
                f"NOT {x}.name = PREV({x}.name, {k})",
                f"({x}.value > 3 OR {x}.value < PREV({x}.value, {k}))",
                f"{x}.value BETWEEN PREV({x}.value) AND PREV({x}.value, {k})",
                f"PREV({x}.value, {k}) IS NULL",
            )
        )

    def type_test(self, x: str) -> str:
        test = f"IS {self.rng.choice(('', '', 'NOT '))}"
        name = self.rng.choice(TYPES)
        name = f"S>{name}" if _chance(self.rng, 0.15) else name
        return self.rng.choice((f"{x} {test}{name}", f"NOT {x} {test}{name}"))

    def prior(self, x: str) -> str:
        function = self.rng.choice(("MAX", "MIN", "AVG", "SUM", "FIRST", "LAST"))
        return self.rng.choice(
            (
                f"{x}.value >= {function}(PRIOR {x}.value)",
                f"{x}.id <> {function}(PRIOR {x}.id)",
                f"COUNT(PRIOR {x}) < 2",
            )
        )

    def aggregate(self, x: str) -> str:
        function = self.rng.choice(("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"))
        operator = self.rng.choice((">", "<=", "=", "<"))
        bound = self.rng.randint(1, 6)
        return self.rng.choice(
            (
                f"COUNT({x}) {operator} {bound % 3 + 1}",
                f"{function}({x}.value) {operator} {bound}",
                f"{function}({x}.id) {operator} {bound}",
                f"FIRST({x}.value) {operator} LAST({x}.value)",
                f"{x}.value {operator} {function}({x}.value)",
                f"LAST({x}.name) {operator} 'q'",
            )
        )
