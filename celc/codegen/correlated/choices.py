"""Conditions across events as Python expressions over remembered columns.

A clause holds of a match if it holds for every choice of one event for each label that it names
outside of functions. The expressions here are about one such *choice*. In the generated code,
`events_k` holds the events of the clause's label number k, in stream order, and `place_k` is the
place of the chosen event in `events_k`. All else is as for conditions on one event (`conditions`).

Two texts are compared by the numbers that stand for them. A condition on one text alone is a column
of truths, computed before.

Long: each function and each type of a value has its own translation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from celc_runtime.values import decimals
from celc_runtime.values.types import is_wide

from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.decimals import in_column
from celc.codegen.expressions.own_aggregates import OwnAggregateCode
from celc.core import formula as core
from celc.core.show import show_predicate
from celc.core.terms import distances_looked_back, joined_texts, labels_in_order, type_tested
from celc.core.traversal import OF_SEVERAL_EVENTS, operands_of

SymbolsOfTypes: TypeAlias = Mapping[str, frozenset[int]]
"""The symbols of the events of each type, by its `text_of_type`."""

_ENDS = {"FIRST": "first_of", "LAST": "last_of"}
_EXTREMES = {"MIN": "smallest", "MAX": "largest"}


@dataclass(slots=True)
class ChoiceCode(ConditionCode):
    """Turns clauses into expressions; collects the columns they read."""

    codes: dict[str, int] = field(default_factory=dict)
    """Text attributes that are read as numbers, one a text → number of the column `code_n`."""
    ranks: dict[str, int] = field(default_factory=dict)
    """Those of them whose order counts, as for `<` and MIN → number of the column `rank_n`."""
    spelled: dict[str, int] = field(default_factory=dict)
    """Text attributes whose letters are read, as for `||` → number of the column `spelled_n`."""
    spellings: dict[str, int] = field(default_factory=dict)
    """Constant texts whose letters are read → their numbers."""
    symbols: SymbolsOfTypes = field(default_factory=dict)  # what a test of an event's type reads
    asks_for_symbols: bool = False  # whether an expression so far has such a test
    own: OwnAggregateCode | None = None  # writes the functions of aggregates that the file declares
    room: Callable[[], str] | None = None
    """Makes the name of a buffer that holds as many numbers as a match has events. None: each
    expression allocates its own."""
    _labels: tuple[str, ...] = ()  # of the clause, in the order of their numbers
    _chosen: Mapping[str, str] = field(default_factory=dict)
    """Label → variable with the place of its event, for the labels of SOME and EVERY around."""
    _missing_is_true: bool = True
    """Whether a comparison is TRUE if it looks back and there are not so many events before."""
    _named: Mapping[str, str] = field(default_factory=dict)
    """Label → variable with the chosen event itself, for labels without a `place_k`."""

    @property
    def attributes_read(self) -> set[str]:
        """All attributes that the conditions so far read, and those of keys."""
        read = {*self.attributes, *self.codes, *self.spelled}
        return read | self.text_attributes | self.key_attributes

    def column_of(self, attribute: str) -> tuple[str, str]:
        """The columns with the values of an attribute and with whether they are not NULL."""
        return self._column(attribute)

    def code_of(self, attribute: str) -> str:
        """The column with the numbers of the texts of an attribute, negative for NULL."""
        return self._code(attribute)

    def of_clause(self, clause: core.Clause, named: Mapping[str, str] | None = None) -> str:
        """An expression that is true where the clause is TRUE of a choice.

        named: variables with the chosen events of labels that have no `place_k`.
        """
        self._labels, self._named = labels_in_order(clause), named or {}
        parts = [self.predicate(predicate) for predicate in clause.predicates]
        return " | ".join(parts) if parts else "False"

    def predicate(self, predicate: core.Predicate) -> str:
        """An expression that is true where the predicate is TRUE of a choice."""
        if isinstance(predicate, core.Quantified):
            return self._quantified(predicate)
        if type_tested(predicate) is not None:
            truth = self._type_tested(predicate)
        elif isinstance(predicate, core.Membership) and predicate.negated and predicate.has_null:
            truth = "False"  # of NOT IN (…, NULL), except where it looks back to nothing
        elif operands_of(predicate)[0].type is core.DataType.STRING:
            truth = self._texts_compared(predicate)
        elif isinstance(predicate, core.NullTest):
            known: dict[str, None] = {}
            self._needs(predicate.operand, known)
            valid = " & ".join(known) or "True"
            truth = f"({valid})" if predicate.negated else f"(not ({valid}))"
        else:
            # Not by `super()`: a dataclass with slots is not the class that it looks for.
            truth = ConditionCode.predicate(self, predicate)
        # Before the first position there is nothing to compare with.
        behind = distances_looked_back(predicate)
        firsts = [self._lacks(label, behind[label]) for label in self._labels if label in behind]
        lacks = [*filter(None, firsts)]
        if lacks and not self._missing_is_true:
            return f"((not ({' | '.join(lacks)})) & {truth})"
        return "(" + " | ".join([*lacks, truth]) + ")" if firsts else truth

    # --- SOME and EVERY ---------------------------------------------------------------------------

    def _quantified(self, predicate: core.Quantified) -> str:
        """A call of a function that tries the events of the labels one after another."""
        assert self.own is not None
        around, missing_is_true = self._chosen, self._missing_is_true
        places = [f"chosen_{len(around) + n}" for n in range(len(predicate.labels))]
        self._chosen = {**around, **dict(zip(predicate.labels, places, strict=True))}
        self._missing_is_true = predicate.every
        code = self._truth(predicate.condition)
        lines, indent = [], ""
        for label, place in zip(predicate.labels, places, strict=True):
            lines.append(f"{indent}for {place} in range({self._all(label)}.shape[0]):")
            indent += "    "
        wanted = f"not ({code})" if predicate.every else code
        lines += [f"{indent}if {wanted}:", f"{indent}    return {not predicate.every}"]
        lines.append(f"return {predicate.every}")
        self._chosen, self._missing_is_true = around, missing_is_true
        call = self.own.search(show_predicate(replace(predicate, negated=False)), lines, places)
        return f"(not {call})" if predicate.negated else call

    def _all(self, label: str) -> str:
        """The events of a label."""
        return f"events_{self._labels.index(label)}"

    def _place(self, label: str) -> str:
        """The place of the chosen event among the events of its label."""
        return self._chosen.get(label) or f"place_{self._labels.index(label)}"

    def _lacks(self, label: str, distance: int) -> str | None:
        """A test whether fewer than `distance` events of a label lie before the chosen one.

        None: it is known to be false.
        """
        place = self._place(label)
        return f"({place} == 0)" if distance == 1 else f"({place} < {distance})"

    def _type_tested(self, predicate: core.Predicate) -> str:
        """An expression that is true where the chosen event has one of the types."""
        assert isinstance(predicate, core.Membership)
        assert isinstance(predicate.operand, core.AttributeValue)
        event = self._event(predicate.operand)
        symbols = sorted(
            symbol
            for value in predicate.values
            for symbol in self.symbols.get(str(value), frozenset())
        )
        tests = [
            (
                f"({first} <= symbol[{event}] <= {last})"
                if first < last
                else f"(symbol[{event}] == {first})"
            )
            for first, last in _runs(symbols)
        ]
        self.asks_for_symbols = True
        truth = "(" + " | ".join(tests) + ")" if tests else "False"
        return f"(not {truth})" if predicate.negated else truth

    # --- events -----------------------------------------------------------------------------------

    def _events(self, node: core.Aggregate) -> str:
        events = self._all(node.label)
        return f"{events}[:{self._place(node.label)}]" if node.prior else events

    def _event(self, node: core.AttributeValue | core.Previous | core.Aggregate) -> str:
        """The index of the event whose attribute is read; −1 where there is no such event."""
        match node:
            case core.AttributeValue():
                place = f"{self._all(node.label)}[{self._place(node.label)}]"
                return place if node.label in self._chosen else self._named.get(node.label, place)
            case core.Previous(distance=1):
                return f"{self._all(node.label)}[{self._place(node.label)} - 1]"
            case core.Previous():
                # With fewer events before, event 0 is read, and its value is not used.
                place = self._place(node.label)
                return f"{self._all(node.label)}[max({place} - {node.distance}, 0)]"
            case core.Aggregate(function="NTH"):
                return self.imports.call("nth_of", self._events(node), str(node.place))
            case core.Aggregate(function="FIRST" | "LAST"):
                return self.imports.call(_ENDS[node.function], self._events(node))
            case core.Aggregate(type=core.DataType.STRING):
                assert node.attribute is not None
                code, rank = self._code(node.attribute), self._rank(node.attribute)
                function = f"{_EXTREMES[node.function]}_text"
                return self.imports.call(function, rank, code, self._events(node))
            case _:
                assert node.attribute is not None
                column, valid = self._column(node.attribute)
                function = _EXTREMES[node.function] + ("_wide" if is_wide(node.type) else "")
                return self.imports.call(function, column, valid, self._events(node))

    # --- numbers ----------------------------------------------------------------------------------

    def _needs(self, expression: core.Expression, known: dict[str, None]) -> None:
        """Add the tests to `known` without which the value of the expression is NULL."""
        match expression:
            case core.AttributeValue() | core.Previous():
                _, valid = self._column(expression.attribute)
                known[f"{valid}[{self._event(expression)}]"] = None
            case core.Aggregate(attribute=None):
                pass
            case core.Aggregate(function="DISTINCT"):
                pass
            case core.OwnCall():
                pass
            case core.Aggregate(function="OWN"):
                known[f"{self._own_call(expression)}[1]"] = None
            case core.Aggregate(function="VARIANCE" | "STDDEV", attribute=str() as attribute):
                _, valid = self._column(attribute)
                count = self.imports.call("count_known", valid, self._events(expression))
                known[f"({count} > 1)"] = None
            case core.Aggregate(attribute=str() as attribute):
                _, valid = self._column(attribute)
                events = self._events(expression)
                if expression.function == "NTH":
                    event = self._event(expression)
                    known[f"({event} >= 0)"] = None
                    known[f"{valid}[{event}]"] = None
                elif expression.function in _ENDS:
                    known[f"({events}.shape[0] > 0)"] = None
                    known[f"{valid}[{self._event(expression)}]"] = None
                else:
                    known[self.imports.call("some_known", valid, events)] = None
                if (expression.function, expression.type) == ("SUM", core.DataType.INTERVAL):
                    column, _ = self._column(attribute)
                    known[self.imports.call("can_sum_interval", column, valid, events)] = None
                if expression.function in ("SUM", "AVG"):
                    known |= dict.fromkeys(self._decimals_that_fit(expression))
            case _:
                ConditionCode._needs(self, expression, known)

    def _value(self, expression: core.Expression) -> str:
        match expression:
            case core.AttributeValue() | core.Previous():
                return self._element(expression)
            case core.Aggregate():
                return self._aggregate(expression)
            case core.OwnCall():
                return self._call_of_lists(expression)
            case _:
                return ConditionCode._value(self, expression)

    def _aggregate(self, node: core.Aggregate) -> str:
        events = self._events(node)
        if node.attribute is None:
            return f"{events}.shape[0]"
        if node.function == "OWN":
            return f"{self._own_call(node)}[0]"
        if node.function == "DISTINCT" and node.read == (core.DataType.STRING,):
            return self.imports.call(
                "count_distinct_texts", self._code(node.attribute), events, self._room(events)
            )
        column, valid = self._column(node.attribute)
        if node.function in (*_ENDS, *_EXTREMES, "NTH"):
            return self._element(node)
        if any(isinstance(type, core.DecimalType) for type in (node.type, *node.read)):
            return self._of_decimals(node)
        if node.function in ("VARIANCE", "STDDEV"):
            function = "variance" if node.function == "VARIANCE" else "deviation"
            return self.imports.call(function, column, valid, events)
        if node.function in ("MEDIAN", "DISTINCT"):
            function = "count_distinct" if node.function == "DISTINCT" else "median"
            if node.type is core.DataType.INTERVAL:
                function = "median_interval"
            return self.imports.call(function, column, valid, events, self._room(events))
        if node.type is core.DataType.INTERVAL:
            function = "average" if node.function == "AVG" else "sum"
            return self.imports.call(f"{function}_interval", column, valid, events)
        if node.function == "AVG":
            return self.imports.call("average", column, valid, events)
        kind = "real" if node.type is core.DataType.DOUBLE else "whole"
        return self.imports.call(f"sum_{kind}", column, valid, events)

    def _element(self, node: core.AttributeValue | core.Previous | core.Aggregate) -> str:
        """The value of an attribute at the event that is chosen."""
        assert node.attribute is not None
        column, _ = self._column(node.attribute)
        return in_column(f"{column}[{self._event(node)}]", node.type, self.imports)

    def _of_decimals(self, node: core.Aggregate) -> str:
        """The value of a function of DECIMALs."""
        (read,) = node.read
        assert isinstance(read, core.DecimalType)
        assert node.attribute is not None
        events = self._events(node)
        columns = (*self._column(node.attribute), events)
        match node.function:
            case "SUM" | "AVG":
                total, average = self._sum_of_decimals(node)
                found = total if node.function == "SUM" else average
                return found if is_wide(node.type) else self.imports.call("narrow_of", found)
            case "DISTINCT" if is_wide(read):
                return self.imports.call("count_distinct_wide", *columns)
            case "DISTINCT":
                return self.imports.call("count_distinct", *columns, self._room(events))
            case "MEDIAN":
                room = self._room(events)
                return self.imports.call("median_of_decimals", *columns, room, str(read.scale))
            case _:
                function = "variance" if node.function == "VARIANCE" else "deviation"
                return self.imports.call(f"{function}_of_decimals", *columns, str(read.scale))

    def _sum_of_decimals(self, node: core.Aggregate) -> tuple[str, str]:
        """The sum and the average of DECIMALs, as pairs of words."""
        (read,) = node.read
        assert isinstance(read, core.DecimalType)
        assert isinstance(node.type, core.DecimalType)
        assert node.attribute is not None
        column, valid = self._column(node.attribute)
        events, digits = self._events(node), str(decimals.sum_type(read).precision)
        function = "sum_of_wide" if is_wide(read) else "sum_of_decimals"
        total = self.imports.call(function, column, valid, events, digits)
        if node.function == "SUM":
            return total, ""
        count = self.imports.call("wide_of", self.imports.call("count_known", valid, events))
        scales = (node.type.scale - read.scale, node.type.precision)
        return total, self.imports.call("divide_decimals", total, count, *map(str, scales))

    def _decimals_that_fit(self, node: core.Aggregate) -> Iterator[str]:
        """Tests whether a sum or an average fits its type; if it does not, it is NULL."""
        if isinstance(node.type, core.DecimalType):
            total, average = self._sum_of_decimals(node)
            yield self.imports.call("is_decimal", total)
            if average:
                yield self.imports.call("is_decimal", average)

    def _room(self, events: str) -> str:
        """A buffer with a number for each event, in which functions sort."""
        if self.room is not None:
            return self.room()
        self.imports.use("np")
        return f"np.empty({events}.shape[0], np.int64)"

    def _own_call(self, node: core.Aggregate) -> str:
        """The call of an aggregate that the file declares. It returns (value, is not NULL)."""
        assert self.own is not None
        function = self.own.function(node)
        columns = [variable for name in function.columns for variable in self._column(name)]
        self.text_attributes |= function.text_attributes
        texts = [f"text_{self.texts.setdefault(text, len(self.texts))}" for text in function.texts]
        for name in function.spelled:
            texts.append(f"spelled_{self.spelled.setdefault(name, len(self.spelled))}")
        texts += map(self._own, function.spellings)
        texts += ["letters", "stops"] if function.spelled or function.spellings else []
        return f"{function.name}({', '.join([*columns, *texts, self._events(node)])})"

    def _call_of_lists(self, node: core.OwnCall) -> str:
        """The call of a function that the file declares, with the events of its labels."""
        assert self.own is not None
        columns = [name for one in node.operands for name in self._column(one.attributes[0])]
        of_label = {one.label: self._events(one) for one in node.operands}
        return f"{self.own.calls.call(node)}({', '.join([*columns, *of_label.values()])})"

    # --- texts ------------------------------------------------------------------------------------

    def _code(self, attribute: str) -> str:
        return f"code_{self.codes.setdefault(attribute, len(self.codes))}"

    def _rank(self, attribute: str) -> str:
        self._code(attribute)
        return f"rank_{self.ranks.setdefault(attribute, len(self.ranks))}"

    def _texts_compared(self, predicate: core.Predicate) -> str:
        operands = [o for o in operands_of(predicate) if not isinstance(o, core.Constant)]
        if any(isinstance(o, core.Constant) and o.value is None for o in operands_of(predicate)):
            return "False"
        if any(isinstance(o, core.Call) or _is_own(o) for o in operands):
            return self._joined_texts(predicate)
        if len(operands) == 2 and not _of_one_event(operands):
            assert isinstance(predicate, core.Comparison)
            return self._two_texts(predicate)
        alone = _of_event(predicate)
        attributes = {o.attribute for o in operands_of(alone) if isinstance(o, core.AttributeValue)}
        self.text_attributes |= attributes
        truth = f"text_{self._text(alone)}"
        node = operands[0]
        assert isinstance(node, core.AttributeValue | core.Previous | core.Aggregate)
        event = self._event(node)
        if not isinstance(node, core.Aggregate):
            return f"{truth}[{event}]"
        if isinstance(predicate, core.NullTest) and not predicate.negated:
            return f"(({event} < 0) | {truth}[{event}])"
        return f"(({event} >= 0) & {truth}[{event}])"

    def _two_texts(self, predicate: core.Comparison) -> str:
        known: dict[str, None] = {}
        codes, ranks = [], []
        for operand in (predicate.left, predicate.right):
            assert isinstance(operand, core.AttributeValue | core.Previous | core.Aggregate)
            assert operand.attribute is not None
            event = self._event(operand)
            if isinstance(operand, core.Aggregate):
                known[f"({event} >= 0)"] = None
            code = f"{self._code(operand.attribute)}[{event}]"
            known[f"({code} >= 0)"] = None
            codes.append(code)
            if predicate.operator not in ("=", "!="):
                ranks.append(f"{self._rank(operand.attribute)}[{event}]")
        operator = "==" if predicate.operator == "=" else predicate.operator
        left, right = ranks or codes
        return "(" + " & ".join([*known, f"({left} {operator} {right})"]) + ")"

    def _joined_texts(self, predicate: core.Predicate) -> str:
        """A condition on `x.a || y.b`, whose texts are compared piece by piece."""
        if any(map(self._is_made, operands_of(predicate))):
            return self._made_texts(predicate)
        known: dict[str, None] = {}
        sides = [self._pieces(operand, known) for operand in operands_of(predicate)]
        match predicate:
            case core.NullTest(negated=negated):
                truth = f"({' & '.join(known)})"
                return truth if negated else f"(not {truth})"
            case core.Comparison():
                operator = "==" if predicate.operator == "=" else predicate.operator
                asked = f"({self._order_of(*sides)} {operator} 0)"
            case core.Membership():
                values = [f"({self._own(one)},)" for one in predicate.values]
                found = [f"({self._order_of(sides[0], one)} == 0)" for one in values]
                asked = f"({' | '.join(found)})"
                asked = f"(not {asked})" if predicate.negated else asked
            case _:
                raise AssertionError("joined texts of several events are compared")
        # `and` stops before a piece that is NULL: it has no number to read a text by.
        return "(" + " and ".join([*known, asked]) + ")"

    def _made_texts(self, predicate: core.Predicate) -> str:
        """A predicate on texts that aggregates make. A generated function compares their bytes."""
        lines: list[str] = []
        sides = [self._bytes_of(operand, lines) for operand in operands_of(predicate)]
        match predicate:
            case core.NullTest(negated=negated):
                lines = [line.replace("return False", f"return {not negated}") for line in lines]
                asked = str(negated)
            case core.Comparison():
                operator = "==" if predicate.operator == "=" else predicate.operator
                asked = f"{self.imports.call('order_of_made', *sides)} {operator} 0"
            case core.Membership():
                values = [self._spelled(self._own(one)) for one in predicate.values]
                orders = [self.imports.call("order_of_made", sides[0], one) for one in values]
                asked = " or ".join(f"({one} == 0)" for one in orders) or "False"
                asked = f"not ({asked})" if predicate.negated else asked
            case _:
                raise AssertionError("a text that an aggregate makes is compared")
        assert self.own is not None
        return self.own.of_texts(show_predicate(predicate), [*lines, f"return {asked}"])

    def _bytes_of(self, text: core.Expression, lines: list[str]) -> str:
        """The variable with the bytes of a text. Adds the lines that set it to `lines`.

        These lines return False if the text is NULL.
        """
        whole = f"bytes_{len(lines)}"
        for number, piece in enumerate(joined_texts(text)):
            if isinstance(piece, core.Aggregate) and _is_own(piece):
                value, there = f"value_{len(lines)}", f"known_{len(lines)}"
                lines.append(f"{value}, {there} = {self._own_call(piece)}")
                found = value if self._is_made(piece) else self._spelled(value)
                known = [there]
            else:
                needed: dict[str, None] = {}
                found, known = self._spelled(self._number_of(piece, needed)), [*needed]
            if known:
                lines += [f"if not ({' and '.join(known)}):", "    return False"]
            if number:
                found = self.imports.call("joined_text", whole, found)
            lines.append(f"{whole} = {found}")
        return whole

    def _spelled(self, number: str) -> str:
        return self.imports.call("spelled_text", "letters", "stops", number)

    def _is_made(self, text: core.Expression) -> bool:
        """Whether an aggregate makes a piece of a text. Such a text has no number."""
        return any(
            isinstance(one, core.Aggregate) and one.own is not None and one.own.makes_texts
            for one in joined_texts(text)
        )

    def _order_of(self, left: str, right: str) -> str:
        """A call that compares two texts, each given by its pieces: -1, 0 or 1."""
        return self.imports.call("order_of_texts", "letters", "stops", left, right)

    def _own(self, text: object) -> str:
        """The number of a constant text of the query."""
        self.imports.use("np")
        return f"np.int64({self.spellings.setdefault(str(text), len(self.spellings))})"

    def _pieces(self, text: core.Expression, known: dict[str, None]) -> str:
        """The numbers of the pieces of a text. Adds the tests that no piece is NULL to `known`."""
        numbers = [self._number_of(piece, known) for piece in joined_texts(text)]
        return f"({', '.join(numbers)},)"

    def _number_of(self, piece: core.Expression, known: dict[str, None]) -> str:
        """The number of a text that is not joined."""
        if isinstance(piece, core.Constant):
            return self._own(piece.value)
        if isinstance(piece, core.Aggregate) and _is_own(piece):
            call = self._own_call(piece)
            known[f"{call}[1]"] = None
            return f"{call}[0]"
        assert isinstance(piece, core.AttributeValue | core.Previous | core.Aggregate)
        assert piece.attribute is not None
        event = self._event(piece)
        if isinstance(piece, core.Aggregate):
            known[f"({event} >= 0)"] = None
        column = self.spelled.setdefault(piece.attribute, len(self.spelled))
        number = f"spelled_{column}[{event}]"
        known[f"({number} >= 0)"] = None
        return number


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of numbers without gaps; the numbers ascend."""
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] > number + 1:
            yield numbers[start], number
            start = place + 1


def _is_own(operand: core.Expression) -> bool:
    return isinstance(operand, core.Aggregate) and operand.function == "OWN"


def _of_one_event(operands: Sequence[core.Expression]) -> bool:
    """Whether all operands are attributes of the event chosen for one label."""
    labels = {o.label for o in operands if isinstance(o, core.AttributeValue)}
    return len(labels) == 1 and all(isinstance(o, core.AttributeValue) for o in operands)


def _of_event(predicate: core.Predicate) -> core.Predicate:
    """The predicate with its text read from one event, without a label."""

    def read(operand: core.Expression) -> core.Expression:
        if isinstance(operand, core.Constant):
            return operand
        assert isinstance(operand, core.AttributeValue | core.Previous | core.Aggregate)
        assert operand.attribute is not None
        return core.AttributeValue("", operand.attribute, operand.type, operand.span)

    match predicate:
        case core.Comparison():
            return replace(predicate, left=read(predicate.left), right=read(predicate.right))
        case core.Membership() | core.PatternMatch() | core.NullTest():
            return replace(predicate, operand=read(predicate.operand))
        case core.Quantified():
            raise AssertionError(OF_SEVERAL_EVENTS)
