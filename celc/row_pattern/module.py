"""Programs → the text of a Python module.

Long: what a module holds, in the order in which it stands there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from celc_runtime.plan import expressions as trees
from celc_runtime.plan import row_pattern as plan
from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import is_wide

from celc.codegen.expressions import decimals
from celc.codegen.expressions.trees import derived_of_rows, tree_of_rows
from celc.codegen.module import ModuleStart
from celc.codegen.text.emit import emit
from celc.codegen.text.escape import (
    comment_text,
    string_literal,
)
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.core import formula as core
from celc.core.formula import DataType
from celc.options import VERIFYING
from celc.plan.code import code
from celc.resolve.types.conversions import aggregated_type
from celc.row_pattern import core as rows
from celc.row_pattern.automaton import State
from celc.row_pattern.code import Lines, Place, Shared, Value
from celc.row_pattern.necessary import realisable
from celc.row_pattern.program import (
    AggregateMemory,
    Memory,
    Program,
    RowMemory,
    ahead_of,
)
from celc.row_pattern.show import Show

if VERIFYING or TYPE_CHECKING:
    from celc import verify
    from celc.verify.rows import row_plan


@frozen
class Function:
    """A function of the module."""

    name: str
    arguments: tuple[str, ...]
    meaning: str
    lines: tuple[str, ...]


@frozen
class RowPatternPart(TemplateView):
    """A query of a module: its functions, and its plan."""

    template: ClassVar[str] = "row_pattern"

    legend: tuple[str, ...]
    functions: tuple[Function, ...]
    plan: str
    functions_used: tuple[str, ...]
    reads_ahead: bool
    number: int


@frozen
class RowPatternEnd(TemplateView):
    """The end of a module: its queries by name."""

    template: ClassVar[str] = "row_pattern_end"

    queries: tuple[str, ...]


def module_parts(
    programs: Sequence[Program], text: str, command: str, max_work: int
) -> tuple[str, ...]:
    """The generated module of queries, in parts; the header names `command`."""
    imports = Imports()
    imports.use("RowPatternQuery", "RowProgram", "row_pattern_names")
    parts = [
        _Writer(made, imports, max_work, number).part()
        for number, made in enumerate(programs, start=1)
    ]
    if any(part.functions for part in parts):
        imports.use("njit")
    end = RowPatternEnd(
        tuple(
            f"{string_literal(made.query.name)}: query_{number}"
            for number, made in enumerate(programs, start=1)
        )
    )
    start = ModuleStart.of(text, command, imports, "MATCH_RECOGNIZE")
    return (start.text(), *(f"{part.text()}\n" for part in parts), end.text())


def _with_later_rows(truth: core.Truth, lines: Lines, *, possible: bool) -> str:
    """The text of the truth that later rows can make a condition true, or that it is true whatever
    comes."""
    if isinstance(truth, core.Every | core.Some):
        parts = (_with_later_rows(part, lines, possible=possible) for part in truth.parts)
        return f"({(' & ' if isinstance(truth, core.Every) else ' | ').join(parts)})"
    ahead, text = ahead_of(truth), lines.truth(truth)
    if ahead <= 0:
        return f"({text})"
    return (
        f"((row + {ahead} >= end) | ({text}))"
        if possible
        else f"((row + {ahead} < end) & ({text}))"
    )


_MOST_MOVES = 200  # moves written as calls, which a reader can follow

_STARTS = {True: "start at the first row of a partition", False: "start at another row"}

_READ = ("columns", "texts", "truths", "names")
"""The first arguments of all functions: columns and texts as numbers, the truths of LIKE and RLIKE
by text, and the variables' names as texts."""


class _Writer:
    def __init__(self, made: Program, imports: Imports, max_work: int, number: int) -> None:
        self._made = made
        self._number = number
        self._max_work = max_work
        self._query = made.query
        self._imports = imports
        self._shared = Shared(imports)
        self._show = Show(made.query)
        self._navigations: dict[core.Navigation, int] = {}
        self._aggregates: dict[core.AggregateOfRows, int] = {}

    def part(self) -> RowPatternPart:
        """The functions and the plan."""
        functions: dict[str, Function | None] = {
            self._called("conditions"): self._conditions(),
            self._called("advance"): None,
            self._called("holds"): None,
        }
        ahead = self._possible()
        if any(condition.path is not None for condition in self._made.conditions):
            functions[self._called("advance")] = self._advance()
            functions[self._called("holds")] = self._holds()
        measures = tuple(self._measure(measure) for measure in self._query.measures)
        aggregates = self._aggregate_list()
        written = tuple(one for one in (*functions.values(), ahead) if one is not None)
        found = self._plan(measures, aggregates)
        if VERIFYING:
            verify.verify("lower", "plan", row_plan(found))
        text = emit(found, self._imports)
        return RowPatternPart(
            tuple(self._legend()),
            written,
            text,
            tuple(name if one is not None else "None" for name, one in functions.items()),
            ahead is not None,
            self._number,
        )

    def _called(self, function: str) -> str:
        """The name of a function of the module, which is of this query alone."""
        return f"{function}_{self._number}"

    def _legend(self) -> Iterable[str]:
        yield "# Variables, by their numbers in the moves:"
        for number, name in enumerate(self._query.variables):
            yield f"#   {number}  {comment_text(name)}"
        made = self._made.automaton
        if sum(len(state.moves) for state in made.states) <= _MOST_MOVES:
            yield from self._legend_of_conditions()
            yield "# States: the rows that may come next, the preferred first, and the state then."
            for number, state in enumerate(made.states):
                yield f"#   {number}  {comment_text('; '.join(self._state(number, state)))}"
        if self._shared.columns or self._shared.texts:
            yield "# In the functions v1 is a value, and k1 whether it is known: not NULL."

    def _legend_of_conditions(self) -> Iterable[str]:
        if self._made.conditions:
            all_rows, one_row = self._called("conditions"), self._called("holds")
            yield f"# Conditions of moves: what {all_rows} finds for all rows; what {one_row} asks."
        for number, condition in enumerate(self._made.conditions):
            asked = [one for one in (condition.local, condition.path) if one is not None]
            yield f"#   {number}  {comment_text('; '.join(map(self._show.truth, asked)))}"

    def _state(self, number: int, state: State) -> Iterable[str]:
        made = self._made.automaton
        if number in (made.first, made.start):
            yield "start" if made.first == made.start else _STARTS[number == made.first]
        for move in state.moves:
            asked = "" if move.condition < 0 else f" if condition {move.condition}"
            excluded = ", excluded," if move.excluded else ""
            variable = self._query.variables[move.variable]
            yield f"{variable}{asked}{excluded} → {move.target}"
        if state.accepts or state.accepts_at_end:
            yield "a match may end" if state.accepts else "a match may end behind the last row"

    # --- functions --------------------------------------------------------------------------------

    def _function(
        self, name: str, arguments: tuple[str, ...], meaning: str, lines: Lines, end: str = ""
    ) -> Function:
        loads = [
            f"    column_{n}, valid_{n} = columns[{2 * n}], columns[{2 * n + 1}]"
            for n in sorted(lines.columns)
        ]
        body = [*loads, *lines.lines, *([end] if end else [])]
        return Function(name, (*_READ, *arguments), meaning, tuple(body))

    def _conditions(self) -> Function | None:
        if not self._made.local:
            return None
        self._imports.use("np")
        lines = Lines(self._shared, _near, _no_leaf, 3)
        lines.lines += [
            "    for part in range(offsets.shape[0] - 1):",
            "        begin, end = offsets[part], offsets[part + 1]",
            "        for row in range(begin, end):",
        ]
        bits = []
        for number, condition in enumerate(self._made.local):
            lines.comment(self._show.truth(condition))
            lines.write(f"bit_{number} = np.int64({lines.truth(condition)})")
            bits.append(f"(bit_{number} << {number})" if number else "bit_0")
        lines.write(f"found[row] = {' | '.join(bits)}")
        return self._function(
            self._called("conditions"),
            ("offsets", "found"),
            "Find the conditions that hold for each row, as bits; `offsets` divide the partitions.",
            lines,
        )

    def _possible(self) -> Function | None:
        """What conditions that read later rows can still be, at the end of what has come."""
        ahead = [ahead_of(condition) for condition in self._made.local]
        if not any(one > 0 for one in ahead):
            return None
        self._imports.use("np")
        lines = Lines(self._shared, _near, _no_leaf, 3)
        lines.lines += [
            "    for part in range(offsets.shape[0] - 1):",
            "        begin, end = offsets[part], offsets[part + 1]",
            f"        for row in range(max(begin, end - {max(ahead)}), end):",
        ]
        found: dict[str, list[str]] = {"may": [], "is": []}
        for number, condition in enumerate(self._made.local):
            if ahead[number] > 0:
                lines.comment(self._show.truth(condition))
                for kind, bits in found.items():
                    text = _with_later_rows(condition, lines, possible=kind == "may")
                    lines.write(f"{kind}_{number} = np.int64({text})")
                    bits.append(f"({kind}_{number} << {number})")
        lines.write(f"possible[row] = {' | '.join(found['may'])}")
        lines.write(f"certain[row] = {' | '.join(found['is'])}")
        return self._function(
            self._called("possible"),
            ("offsets", "possible", "certain"),
            "Find which conditions of the last rows those that come later can make true, and which "
            "ones are true whatever comes, as bits.",
            lines,
        )

    def _advance(self) -> Function:
        """What the path remembers after one row more."""
        own = Lines(self._shared, _here, _label_of_row, 1)
        own.write("for place in range(before.shape[0]):")
        own.write("after[place] = before[place]", 1)
        for memory in self._made.memories:
            self._remember(memory, own)
        return self._function(
            self._called("advance"),
            ("label", "row", "before", "after", "reals_before", "reals_after"),
            "Write the memory of a path after a row that is mapped to variable `label`.",
            own,
        )

    def _remember(self, memory: Memory, lines: Lines) -> None:
        variables = (
            memory.variables if isinstance(memory, RowMemory) else memory.aggregate.variables
        )
        lines.comment(self._remembered_as(memory))
        test = _is_one_of(variables)
        deeper = 0
        if test is not None:
            lines.write(f"if {test}:")
            deeper = 1
        if isinstance(memory, RowMemory):
            for line in _rows_remembered(memory):
                lines.write(line, deeper)
            return
        inner = lines.inside(deeper)
        self._accumulate(memory, inner)
        lines.lines += inner.lines

    def _remembered_as(self, memory: Memory) -> str:
        """What registers hold, in words."""
        if isinstance(memory, AggregateMemory):
            return f"{self._show.value(memory.aggregate)}, from register {memory.at} on"
        end, what = "first" if memory.first else "last", "variables" if memory.labels else "rows"
        of = self._show.variables(memory.variables)
        return f"the {memory.depth} {end} {what} of {of}, from register {memory.at} on"

    def _accumulate(self, memory: AggregateMemory, lines: Lines) -> None:
        aggregate, at = memory.aggregate, memory.at
        if aggregate.argument is None:
            lines.write(f"after[{at}] += 1")
            return
        value = lines.value(aggregate.argument)
        known = value.known or "True"
        if aggregate.function == "COUNT":
            lines.write(f"after[{at}] += np.int64({known})")
            self._imports.use("np")
            return
        real = _is_real(aggregate)
        after = "reals_after" if real else "after"
        lines.write(f"if {known}:")
        match aggregate.function:
            case "SUM" | "AVG" if isinstance(aggregate.type, core.DecimalType):
                wide = decimals.wide(value.text, aggregate.argument.type, self._imports)
                lines.write(self._imports.call("add_to_sum", "after", str(at), wide), 1)
            case "SUM" | "AVG" if aggregate.type is DataType.INTERVAL:
                sums = f"after[{at}], after[{at + 1}]"
                lines.write(f"{sums} = {self._imports.call('add_duration', sums, value.text)}", 1)
            case "MIN" | "MAX" if memory.words == 2:
                old = self._imports.call("pair_in", "after", str(at))
                sign = "<" if aggregate.function == "MIN" else ">"
                lines.write(f"if after[{memory.counter}] == 0 or {value.text} {sign} {old}:", 1)
                kept = self._imports.call("put_pair", "after", str(at), value.text)
                lines.write(kept, 2)
            case "SUM" | "AVG" if real:
                self._imports.use("np")
                lines.write(f"{after}[{at}] += np.float64({value.text})", 1)
            case "SUM":
                total = self._imports.call("add_long", f"{after}[{at}]", value.text)
                lines.write(f"{after}[{at}] = {total}", 1)
            case _:
                new, old = value.text, f"{after}[{at}]"
                if aggregate.function == "MAX":
                    new, old = old, new
                less = f"{new} < {old}"
                if real:
                    less = self._imports.call("less_real", new, old)
                lines.write(f"if after[{memory.counter}] == 0 or {less}:", 1)
                lines.write(f"{after}[{at}] = {value.text}", 2)
        lines.write(f"after[{memory.counter}] += 1", 1)

    def _holds(self) -> Function:
        parts: list[str] = []
        columns: set[int] = set()
        for number, condition in enumerate(self._made.conditions):
            if condition.path is None:
                continue
            lines = Lines(self._shared, self._in_path, self._known_in_path, 2)
            truth = lines.truth(condition.path)
            told = comment_text(self._show.truth(condition.path))
            parts += [f"    if condition == {number}:  # {told}"]
            parts += [*lines.lines, f"        return {truth}"]
            columns |= lines.columns
        body = Lines(self._shared, _here, _no_leaf, 1)
        body.lines, body.columns = parts, columns
        return self._function(
            self._called("holds"),
            (
                *("condition", "row", "start", "begin", "end", "number", "labels"),
                *("memory", "reals"),
            ),
            "Whether a condition is TRUE for a row that is mapped, by the memory of its path.",
            body,
            "    return True",
        )

    def _memory_at(self, variables: core.Variables | None, first: bool, labels: bool) -> int:
        for memory in self._made.memories:
            if isinstance(memory, RowMemory) and (
                (memory.variables, memory.first, memory.labels) == (variables, first, labels)
            ):
                return memory.at
        raise AssertionError("conditions read what has been collected")

    def _in_path(self, row: core.Row) -> Place:
        if not isinstance(row, core.Navigation):
            return _near(row)
        if row.variables is None:
            base = f"start + {row.offset}" if row.first else f"row - {row.offset}"
            base = base.removesuffix(" + 0").removesuffix(" - 0")
            exists = f"({base} <= row)" if row.first else f"({base} >= start)"
        else:
            at = self._memory_at(row.variables, row.first, False) + row.offset
            base, exists = f"memory[{at}]", f"(memory[{at}] >= 0)"
        if not row.shift:
            return Place(base, exists)
        inside = (
            f"({base} + {row.shift} < end)"
            if row.shift > 0
            else f"({base} - {-row.shift} >= begin)"
        )
        return Place(
            f"{base} {'+' if row.shift > 0 else '-'} {abs(row.shift)}", f"({exists} & {inside})"
        )

    def _known_in_path(self, lines: Lines, node: core.Expression) -> Value | None:
        match node:
            case core.MatchNumber():
                return Value("number", None)
            case core.LabelAt(row=core.Navigation() as row) if not row.shift:
                at = self._memory_at(row.variables, row.first, True) + row.offset
                new = lines.fresh()
                lines.write(f"k{new} = memory[{at}] >= 0")
                lines.write(f"v{new} = names[memory[{at}]] if k{new} else 0")
                return Value(f"v{new}", f"k{new}")
            case core.LabelAt(row=row):
                place = self._in_path(row)
                new = lines.fresh()
                there = f"({place.text} >= start) & ({place.text} <= row)"
                lines.write(f"k{new} = {place.exists or 'True'} & {there}")
                lines.write(f"v{new} = names[labels[{place.text} - start]] if k{new} else 0")
                return Value(f"v{new}", f"k{new}")
            case core.AggregateOfRows():
                return self._remembered(lines, node)
            case _:
                return None

    def _remembered(self, lines: Lines, node: core.AggregateOfRows) -> Value:
        (memory,) = [
            one
            for one in self._made.memories
            if isinstance(one, AggregateMemory) and one.aggregate == node
        ]
        at = memory.at
        if node.function == "COUNT":
            return Value(f"memory[{at}]", None)
        held = "reals" if _is_real(node) else "memory"
        count = f"memory[{memory.counter}]"
        known = f"({count} > 0)"
        if memory.words == 3:
            return self._decimal_sum(lines, node, at, count)
        if memory.words == 2 and node.type is DataType.INTERVAL:
            return self._duration_sum(lines, node, at, count)
        if memory.words == 2:
            return Value(self._imports.call("pair_in", "memory", str(at)), known)
        if node.function == "AVG":
            self._imports.use("np")
            return Value(f"(reals[{at}] / np.float64(max({count}, 1)))", known)
        text = f"{held}[{at}]"
        if node.type is DataType.FLOAT:
            self._imports.use("np")
            text = f"np.float32({text})"
        if node.type is DataType.BOOLEAN:
            text = f"({text} != 0)"
        return Value(text, known)

    def _decimal_sum(self, lines: Lines, node: core.AggregateOfRows, at: int, count: str) -> Value:
        """SUM or AVG of DECIMALs; NULL where their type does not hold it."""
        assert node.argument is not None
        summed = aggregated_type("SUM", node.argument.type)
        assert isinstance(summed, core.DecimalType)
        new, call = lines.fresh(), self._imports.call
        digits = str(summed.precision)
        lines.write(f"s{new} = {call('decimal_sum', 'memory', str(at), digits)}")
        known, found = f"({count} > 0) & {call('is_decimal', f's{new}')}", f"s{new}"
        if node.function == "AVG":
            type = node.type
            assert isinstance(type, core.DecimalType)
            given = (type.scale - summed.scale, type.precision)
            divisor = call("wide_of", f"max({count}, 1)")
            quotient = call("divide_decimals", f"s{new}", divisor, *map(str, given))
            lines.write(f"q{new} = {quotient}")
            known, found = f"{known} & {call('is_decimal', f'q{new}')}", f"q{new}"
        narrow = found if is_wide(node.type) else call("narrow_of", found)
        lines.write(f"v{new}, k{new} = {narrow}, {known}")
        return Value(f"v{new}", f"k{new}")

    def _duration_sum(self, lines: Lines, node: core.AggregateOfRows, at: int, count: str) -> Value:
        """SUM or AVG of INTERVALs; NULL where 64 bits do not hold it."""
        new, call = lines.fresh(), self._imports.call
        high, low = f"memory[{at}]", f"memory[{at + 1}]"
        if node.function == "AVG":
            found, known = call("mean_duration", high, low, f"max({count}, 1)"), f"{count} > 0"
        else:
            found = call("duration_of", high, low)
            known = f"({count} > 0) & {call('is_duration', high)}"
        lines.write(f"v{new}, k{new} = {found}, {known}")
        return Value(f"v{new}", f"k{new}")

    # --- measures ---------------------------------------------------------------------------------

    def _measure(self, measure: rows.Measure) -> plan.Measure:
        type = measure.expression.type.value
        if measure.clock:
            type = core.DataType.TIMESTAMP_NTZ.value
        return plan.Measure(
            measure.name,
            f"ARRAY<{type}>" if measure.is_list else type,
            tree_of_rows(measure.expression, self._leaf),
        )

    def _leaf(self, node: core.InRowPatterns) -> trees.Tree:
        """What a measure reads."""
        match node:
            case core.ColumnAt(row=core.Navigation() as row):
                return trees.ValueOfRow(node.column, self._navigation(row))
            case core.LabelAt(row=core.Navigation() as row):
                return trees.LabelOfRow(self._navigation(row))
            case core.MatchNumber():
                return trees.NumberOfMatch()
            case core.AggregateOfRows():
                return trees.ValueOfAggregate(self._aggregate(node))
            case core.Existing(row=core.Navigation() as row):
                there = trees.RowIsThere(self._navigation(row))
                asked = trees.Compared("=", there, trees.Constant(True, "BOOLEAN"))
                type, operand = node.type.value, tree_of_rows(node.operand, self._leaf)
                return trees.Conditional(((asked, operand),), trees.Constant(None, type), type)
            case _:
                raise AssertionError("navigation says which row a measure reads")

    def _argument_leaf(self, node: core.InRowPatterns) -> trees.Tree:
        """What an aggregate reads."""
        match node:
            case core.ColumnAt():
                return trees.ValueOfRow(node.column, None)
            case core.LabelAt():
                return trees.LabelOfRow(None)
            case _:
                raise AssertionError("an aggregate is taken of the rows of a match")

    def _navigation(self, row: core.Navigation) -> int:
        return self._navigations.setdefault(row, len(self._navigations))

    def _aggregate(self, node: core.AggregateOfRows) -> int:
        return self._aggregates.setdefault(node, len(self._aggregates))

    def _aggregate_list(self) -> tuple[plan.RowAggregate, ...]:
        found = []
        for node in self._aggregates:
            argument, kept, type = node.argument, node.kept, node.type.value
            found.append(
                plan.RowAggregate(
                    node.function,
                    _variables(node.variables),
                    f"ARRAY<{type}>" if node.function == "ARRAY_AGG" else type,
                    argument=(
                        None if argument is None else tree_of_rows(argument, self._argument_leaf)
                    ),
                    read="" if argument is None else argument.type.value,
                    final=node.final,
                    distinct=node.distinct,
                    kept=None if kept is None else tree_of_rows(kept, self._argument_leaf),
                    order=tuple(
                        plan.SortedBy(
                            tree_of_rows(one.value, self._argument_leaf),
                            one.value.type.value,
                            descending=one.descending,
                            nulls_first=one.nulls_first,
                        )
                        for one in node.order
                    ),
                )
            )
        return tuple(found)

    # --- the plan ---------------------------------------------------------------------------------

    # Long: a list of the fields of the plan.
    def _plan(
        self, measures: tuple[plan.Measure, ...], aggregates: tuple[plan.RowAggregate, ...]
    ) -> plan.RowPlan:
        query, made, shared = self._query, self._made, self._shared
        found = plan.RowPlan(
            name=query.name,
            columns=tuple(plan.RowColumn(c.name, c.outside.value) for c in query.columns),
            derived=derived_of_rows(query.derived),
            partition_by=query.partition_by,
            order_by=tuple(
                plan.RowOrder(o.column, descending=o.descending, nulls_first=o.nulls_first)
                for o in query.order_by
            ),
            variables=query.variables,
            states=self._states(),
            first=made.automaton.first,
            start=made.automaton.start,
            conditions=tuple(
                plan.MoveCondition(bit, path=condition.path is not None, ahead=ahead)
                for condition, bit, ahead in zip(
                    made.conditions, made.bits, made.around.ahead, strict=True
                )
            ),
            local_conditions=len(made.local),
            read=tuple(shared.columns),
            texts=tuple(shared.texts),
            regexes=tuple(shared.regexes),
            rows=query.rows,
            skip=query.skip.mode,
            targets=tuple(sorted(query.skip.targets)),
            target=query.skip.target,
            within=query.within,
            before=made.around.before,
            numbered=made.around.numbered,
            navigations=tuple(
                plan.RowNavigation(
                    _variables(row.variables),
                    first=row.first,
                    offset=row.offset,
                    shift=row.shift,
                    final=row.final,
                )
                for row in self._navigations
            ),
            aggregates=aggregates,
            measures=measures,
            outputs=tuple(
                plan.RowOutput(one.name, one.number, measure=one.kind == "measure")
                for one in query.outputs
            ),
            required=self._required(),
            realisable=realisable(made.local),
            alone=made.around.alone,
        )
        if all(condition.path is None for condition in made.conditions):
            return found
        return replace(
            found,
            registers=tuple(made.registers),
            live=tuple(tuple(one) for one in made.live),
            remembers=made.remembers,
            max_work=self._max_work,
        )

    def _required(self) -> tuple[trees.Tree, ...]:
        """What partitions without it leave out of the result, if anything."""
        if self._query.rows == "WITH UNMATCHED":
            return ()
        return tuple(
            tree_of_rows(core.Asked(one, one.span), self._argument_leaf)
            for one in self._made.required
        )

    def _states(self) -> tuple[plan.RowState, ...]:
        """The states; many of them as lines of numbers, because black would take minutes for that
        many calls."""
        states = tuple(
            plan.RowState(
                tuple(
                    plan.RowMove(m.variable, m.target, condition=m.condition, excluded=m.excluded)
                    for m in state.moves
                ),
                accepts=state.accepts,
                accepts_at_end=state.accepts_at_end,
            )
            for state in self._made.automaton.states
        )
        if sum(len(state.moves) for state in states) <= _MOST_MOVES:
            return states
        lines = []
        for state in states:
            ends = f"{int(state.accepts)}{int(state.accepts_at_end)}"
            moves = (
                f"{m.variable},{m.target},{m.condition},{int(m.excluded)}" for m in state.moves
            )
            lines.append(" ".join([ends, *moves]))
        text = self._imports.call("states_of", string_literal("\n".join(lines)))
        found: tuple[plan.RowState, ...] = code(text, states)
        return found


# --- rows and leaves ------------------------------------------------------------------------------


def _near(row: core.Row) -> Place:
    """A row at a constant distance."""
    assert isinstance(row, core.Here)
    if not row.shift:
        return Place("row", None)
    if row.shift > 0:
        return Place(f"row + {row.shift}", f"(row + {row.shift} < end)")
    return Place(f"row - {-row.shift}", f"(row - {-row.shift} >= begin)")


def _here(row: core.Row) -> Place:
    """The row that an aggregate takes."""
    return Place("row", None)


def _no_leaf(lines: Lines, node: core.Expression) -> Value | None:
    return None


def _label_of_row(lines: Lines, node: core.Expression) -> Value | None:
    return Value("names[label]", None) if isinstance(node, core.LabelAt) else None


def _is_one_of(variables: core.Variables | None) -> str | None:
    if variables is None:
        return None
    return " or ".join(f"label == {one}" for one in sorted(variables)) or "False"


def _variables(variables: core.Variables | None) -> plan.Variables:
    return None if variables is None else tuple(sorted(variables))


def _is_real(aggregate: core.AggregateOfRows) -> bool:
    return aggregate.type in (DataType.FLOAT, DataType.DOUBLE)


def _rows_remembered(memory: RowMemory) -> Iterable[str]:
    new = "label" if memory.labels else "row"
    at = memory.at
    if not memory.first:
        for place in range(at + memory.depth - 1, at, -1):
            yield f"after[{place}] = after[{place - 1}]"
        yield f"after[{at}] = {new}"
        return
    for number, place in enumerate(range(at, at + memory.depth)):
        yield f"{'elif' if number else 'if'} after[{place}] < 0:"
        yield f"    after[{place}] = {new}"
