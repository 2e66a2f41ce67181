"""Syntax of MATCH_RECOGNIZE → a query whose names are resolved and whose expressions are typed.

Every function gives None for a part without a meaning, after saying why once.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

from celc.core import formula
from celc.core.formula import DataType, Truth, Variables
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import row_patterns as messages
from celc.diagnostics.source import Span
from celc.resolve.types.written import type_of_written
from celc.row_pattern import core, syntax
from celc.row_pattern.derived import RowColumns, can_be_column, functions_of_rows
from celc.row_pattern.expressions import Scope, condition, interval, is_clock, key, value
from celc.row_pattern.parser import keywords
from celc.row_pattern.schemas import TableColumns
from celc.row_pattern.simplify import simplest, size_of

MOST_ROWS = 40_000
"""The most rows of a pattern whose quantifiers are written out."""


def resolve(
    query: syntax.Query, found: Diagnostics, name: str, schema: TableColumns | None
) -> core.Query:
    """The meaning of a text; `schema`: the columns of the table, where it has no CREATE TABLE.

    Raises `CelError` with its errors and those that `found` has already.
    """
    resolved = _Resolver(query, found, schema).query(name)
    found.raise_errors()
    assert resolved is not None
    return resolved


class _Resolver:
    def __init__(
        self, query: syntax.Query, found: Diagnostics, schema: TableColumns | None
    ) -> None:
        self._query = query
        self._found = found
        # A declared table has the declared columns, whatever the schema is.
        self._others = {} if schema is None or query.table is not None else schema.others
        self._types_of_others = {name.casefold(): type for name, type in self._others.items()}
        self._columns = self._declared(schema)
        self._numbers = {c.name.casefold(): n for n, c in enumerate(self._columns or ())}
        self._made = RowColumns(self._columns or ())
        self._variables: dict[str, tuple[int, syntax.Name]] = {}
        for variable in _variables_of(query.pattern):
            self._variables.setdefault(variable.key, (len(self._variables), variable))
        self._subsets = self._subsets_of(query.subsets)

    def query(self, name: str) -> core.Query | None:
        """The whole; None after errors."""
        query, found = self._query, self._found
        columns = self._columns or ()
        scope = Scope(
            found,
            columns,
            self._numbers,
            {key: frozenset([n]) for key, (n, _) in self._variables.items()} | self._subsets,
            self._columns is not None,
            self._types_of_others,
            query.source.key,
        )
        partition_by = [self._key("PARTITION BY", one, scope) for one in query.partition_by]
        order_by = [self._key("ORDER BY", one.key, scope) for one in query.order_by]
        self._check_keys()
        measures: list[core.Measure] = []
        for measure in query.measures:
            expression = value(measure.expression, scope.of_measures(measures))
            if expression is not None:
                clock = is_clock(expression, columns)
                measures.append(core.Measure(measure.name.text, expression, clock))
        conditions = self._conditions(scope)
        pattern = simplest(self._pattern(query.pattern))
        if size_of(pattern) > MOST_ROWS:
            found.add(messages.too_many_states(MOST_ROWS, query.pattern.span))
        self._check_exclusion()
        skip = self._skip(query.skip)
        within = self._within(order_by)
        outputs = self._outputs(partition_by, order_by)
        if found.has_errors or skip is None:
            return None
        return core.Query(
            name=name,
            columns=self._made.all,
            derived=self._made.derived,
            partition_by=tuple(number or 0 for number in partition_by),
            order_by=tuple(
                core.Ordered(number or 0, ordered.descending, ordered.nulls_first)
                for ordered, number in zip(query.order_by, order_by, strict=True)
            ),
            measures=tuple(measures),
            rows=query.rows,
            skip=skip,
            pattern=pattern,
            variables=tuple(variable.text for _, variable in self._variables.values()),
            conditions=conditions,
            within=within,
            outputs=outputs,
            pattern_span=query.pattern.span,
            condition_spans=self._condition_spans(),
        )

    # --- names ------------------------------------------------------------------------------------

    def _declared(self, schema: TableColumns | None) -> tuple[core.Column, ...] | None:
        query, found = self._query, self._found
        if query.table is None:
            if schema is None:
                found.add(messages.no_schema(query.source.text, query.source.span))
                return None
            return tuple(_column(name, type) for name, type in schema.types.items())
        if query.table.name.key != query.source.key:
            declared = query.table.name
            found.add(
                messages.other_table(
                    query.source.text, declared.text, query.source.span, declared.span
                )
            )
        columns = []
        for declaration in query.table.columns:
            type = type_of_written(declaration.type, found)
            columns.append(_column(declaration.name.text, type or DataType.INT))
        self._no_two("columns", [declaration.name for declaration in query.table.columns])
        return tuple(columns)

    def _no_two(self, what: str, names: Iterable[syntax.Name]) -> None:
        seen: dict[str, syntax.Name] = {}
        for name in names:
            if name.key in seen:
                place = seen[name.key].span
                self._found.add(messages.duplicate_name(what, name.text, name.span, place))
            seen.setdefault(name.key, name)

    def _key(self, clause: str, node: syntax.Key, scope: Scope) -> int | None:
        """The column that a key is; None after an error."""
        found = key(clause, node.expression, scope)
        if found is None:
            return None
        if isinstance(found, formula.ColumnAt) and node.name is None:
            return found.column
        if not can_be_column(found):
            message = f"{clause} takes no RLIKE: Spark computes keys, by other regular expressions"
            span, help = node.expression.span, "write LIKE, or a column that the table has"
            self._found.add(messages.unsupported(message, span, help))
            return None
        return self._made.number_of(found, clock=is_clock(found, scope.columns))

    def _report_unknown(self, name: syntax.Name, known: Sequence[str]) -> None:
        other = self._types_of_others.get(name.key)
        self._found.add(messages.no_column(name.text, known, other, name.span))

    def _check_keys(self) -> None:
        query = self._query
        keys = [*query.partition_by, *(ordered.key for ordered in query.order_by)]
        self._no_two("keys", [one.called for one in keys])

    def _subsets_of(self, subsets: tuple[syntax.Subset, ...]) -> dict[str, Variables]:
        self._no_two(
            "variables or subsets",
            [*(name for _, name in self._variables.values()), *(s.name for s in subsets)],
        )
        found = {}
        for subset in subsets:
            members = set()
            for member in subset.members:
                if member.key not in self._variables:
                    self._unknown_variable(member, subsets=False)
                else:
                    members.add(self._variables[member.key][0])
            found[subset.name.key] = frozenset(members)
        return found

    def _unknown_variable(self, name: syntax.Name, *, subsets: bool = True) -> None:
        known = [variable.text for _, variable in self._variables.values()]
        if subsets:
            known += [subset.name.text for subset in self._query.subsets]
        self._found.add(messages.unknown_variable(name.text, known, name.span))

    # --- clauses ----------------------------------------------------------------------------------

    def _conditions(self, scope: Scope) -> tuple[Truth | None, ...]:
        definitions = self._query.definitions
        self._no_two("conditions in DEFINE of", [one.name for one in definitions])
        found: list[Truth | None] = [None] * len(self._variables)
        for definition in definitions:
            known = self._variables.get(definition.name.key)
            resolved = condition(definition.condition, scope.of_definition())
            if known is None:
                names = [variable.text for _, variable in self._variables.values()]
                self._found.add(
                    messages.not_in_pattern(definition.name.text, names, definition.name.span)
                )
            elif resolved is not None:
                made = self._made.condition(resolved)
                found[known[0]] = made
                for call in functions_of_rows(made):
                    self._found.add(messages.between_rows(call.function, call.span))
        return tuple(found)

    def _condition_spans(self) -> tuple[Span, ...]:
        places = {one.name.key: one.condition.span for one in self._query.definitions}
        return tuple(places.get(key, name.span) for key, (_, name) in self._variables.items())

    def _skip(self, skip: syntax.Skip) -> core.Skip | None:
        if skip.target is None:
            return core.Skip(skip.mode, frozenset(), "")
        key = skip.target.key
        if key in self._variables:
            number, name = self._variables[key]
            return core.Skip(skip.mode, frozenset([number]), name.text)
        if key in self._subsets:
            return core.Skip(skip.mode, self._subsets[key], skip.target.text)
        self._unknown_variable(skip.target)
        return None

    def _within(self, order_by: list[int | None]) -> int | None:
        query, within = self._query, self._query.within
        if within is None:
            return None
        length = interval(within, self._found)
        help = "write ORDER BY ts first, where ts is a TIMESTAMP or a DATE, ascending"
        if not query.order_by:
            self._found.add(messages.bad_within("WITHIN needs an order in time", within.span, help))
            return None
        first, number = query.order_by[0], order_by[0]
        if number is None:
            return None
        type, called = self._made.all[number].type, first.key.called.text
        if type not in (DataType.TIMESTAMP, DataType.DATE):
            message = f"WITHIN is measured on {called!r}, which is of type {type.value}"
            self._found.add(messages.bad_within(message, within.span, help))
        elif first.descending:
            message = f"WITHIN is measured on {called!r}, which comes in falling order"
            self._found.add(messages.bad_within(message, within.span, help))
        return length

    def _check_exclusion(self) -> None:
        if self._query.rows != "WITH UNMATCHED":
            return
        for node in _nodes(self._query.pattern):
            if isinstance(node, syntax.Exclusion):
                self._found.add(messages.exclusion_with_unmatched(node.span, self._query.rows_span))

    # --- output -----------------------------------------------------------------------------------

    def _outputs(
        self, partition_by: list[int | None], order_by: list[int | None]
    ) -> tuple[core.Output, ...]:
        """The columns of the result, as SELECT picks them."""
        query = self._query
        keys = self._keys_shown(partition_by, order_by)
        every = [*keys, *self._others_shown({one.number for one in keys})]
        if not every:
            self._found.add(messages.no_columns(query.match_span))
        by_name = {one.name.casefold(): one for one in reversed(every)}
        self._check_names(keys, every)
        if query.selected is not None:
            return self._picked(query.selected, every, by_name)
        if self._others and query.rows != "ONE ROW":
            names = [_written(output.name) for output in reversed(by_name.values())]
            assert query.star_span is not None
            self._found.add(messages.left_out(self._others, names, query.star_span))
        return tuple(every)

    def _keys_shown(
        self, partition_by: list[int | None], order_by: list[int | None]
    ) -> list[core.Output]:
        """The columns of PARTITION BY, and where all rows are shown, of ORDER BY: of its
        expressions those with a name."""
        query = self._query
        keys = [*zip(query.partition_by, partition_by, strict=True)]
        if query.rows != "ONE ROW":
            ordered = zip((one.key for one in query.order_by), order_by, strict=True)
            keys += [(one, n) for one, n in ordered if one.column or one.name]
        return [
            core.Output(self._called(one, number), "column", number)
            for one, number in keys
            if number is not None
        ]

    def _others_shown(self, keys: set[int]) -> list[core.Output]:
        """The measures, and where all rows are shown, the columns that are no keys."""
        found = [
            core.Output(measure.name.text, "measure", number)
            for number, measure in enumerate(self._query.measures)
        ]
        if self._query.rows != "ONE ROW":
            found += [
                core.Output(column.name, "column", number)
                for number, column in enumerate(self._columns or ())
                if number not in keys
            ]
        return found

    def _check_names(self, keys: list[core.Output], every: list[core.Output]) -> None:
        """Report columns of the result with one name; keys with one are reported already."""
        query = self._query
        named = [*query.partition_by, *(one.key for one in query.order_by)]
        places = {one.called.key: one.called.span for one in named if one.column is None}
        places |= {measure.name.key: measure.name.span for measure in query.measures}
        seen = {one.name.casefold() for one in keys}
        for output in every[len(keys) :]:
            name = output.name.casefold()
            if name in seen and name in places:
                self._found.add(messages.duplicate_name("columns", output.name, places[name], None))
            seen.add(name)

    def _picked(
        self,
        selected: tuple[syntax.Selected, ...],
        every: list[core.Output],
        by_name: dict[str, core.Output],
    ) -> tuple[core.Output, ...]:
        alias, chosen = self._query.alias, []
        for one in selected:
            if one.table is not None and (alias is None or one.table.key != alias.key):
                text = None if alias is None else alias.text
                self._found.add(messages.unknown_qualifier(one.table.text, text, one.table.span))
            output = by_name.get(one.column.key)
            if output is None:
                if self._columns is not None:
                    self._report_unknown(one.column, [output.name for output in every])
                continue
            given = one.column.text if one.alias is None else one.alias.text
            chosen.append(core.Output(given, output.kind, output.number))
        self._no_two("columns", [one.alias or one.column for one in selected])
        return tuple(chosen)

    def _called(self, node: syntax.Key, number: int) -> str:
        """The name of a key in the result: a column has that of the table."""
        return node.called.text if node.column is None else self._made.all[number].name

    # --- patterns ---------------------------------------------------------------------------------

    def _pattern(self, node: syntax.Pattern, excluded: bool = False) -> core.Pattern:
        match node:
            case syntax.Variable():
                return core.OneRow(self._variables[node.name.key][0], excluded)
            case syntax.Nothing():
                return core.Concatenation(())
            case syntax.Anchor():
                return core.Anchor(node.sign == "^")
            case syntax.Concatenation():
                return core.Concatenation(tuple(self._pattern(p, excluded) for p in node.parts))
            case syntax.Alternation():
                return core.Alternation(tuple(self._pattern(p, excluded) for p in node.parts))
            case syntax.Permutation():
                parts = [self._pattern(part, excluded) for part in node.parts]
                return core.Alternation(
                    tuple(core.Concatenation(order) for order in permutations(parts))
                )
            case syntax.Exclusion():
                return self._pattern(node.part, True)
            case syntax.Repetition():
                part = self._pattern(node.part, excluded)
                return core.Repetition(part, node.least, node.most, node.reluctant)


def _column(name: str, type: DataType) -> core.Column:
    """A column of the table."""
    if type is DataType.TIMESTAMP_NTZ:
        return core.Column(name, DataType.TIMESTAMP, clock=True)
    return core.Column(name, type)


def _below(node: syntax.Pattern) -> tuple[syntax.Pattern, ...]:
    match node:
        case syntax.Concatenation() | syntax.Alternation() | syntax.Permutation():
            return node.parts
        case syntax.Exclusion() | syntax.Repetition():
            return (node.part,)
        case _:
            return ()


def _nodes(pattern: syntax.Pattern) -> Iterator[syntax.Pattern]:
    """The parts of a pattern, in the order of the text."""
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_below(node))


def _variables_of(pattern: syntax.Pattern) -> Iterator[syntax.Name]:
    for node in _nodes(pattern):
        if isinstance(node, syntax.Variable):
            yield node.name


def _written(name: str) -> str:
    """A name as a query writes it, where some words have a meaning of their own."""
    plain = name.isidentifier() and name.upper() not in keywords()
    return name if plain else "`" + name.replace("`", "``") + "`"
