"""The columns of a query of Spark's, as far as its text and declared tables say them.

Without a session nobody but the text knows a type. What is certain from it is taken: columns of
declared tables, CAST, and functions whose type is that of their argument or the same for all. Any
other type is not known, which is an error only where it is asked for. Rejected: the types that
sqlglot gives each expression, which are not Spark's for DECIMALs and for many functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from celc_runtime.plan.frozen import frozen
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

from celc.core.formula import NUMBERS, WHOLE_NUMBERS, DataType
from celc.resolve.types.conversions import aggregated_type
from celc.row_pattern.schemas import TableColumns, columns_of


@frozen
class Column:
    """A column of a query; `type` None: not known."""

    name: str
    type: DataType | None


Columns: TypeAlias = Sequence[Column]


class UnknownTableError(Exception):
    """Nobody tells the columns of a table; `name` None: of what has no name."""

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.name = name


_Source: TypeAlias = tuple[str, Columns | UnknownTableError]
"""A source of FROM as it is called, and its columns, or whose columns nobody tells."""


def query_columns(text: str, tables: Callable[[str], Columns | None]) -> Columns:
    """The columns of a query. tables: the columns of a table by its name with dots; None: not
    known.

    Raises UnknownTableError where the query has all columns of a table that is not known, and
    ValueError with a reason for a text that is no query.
    """
    try:
        query = parse_one(text, dialect="spark")
    except ParseError as problem:
        raise ValueError(str(problem.errors[0]["description"])) from None
    return _Scope(tables, {}).query(query)


def readable(columns: Columns) -> TableColumns:
    """Columns as MATCH_RECOGNIZE reads those of a table."""
    return TableColumns(
        {one.name: one.type for one in columns if one.type is not None},
        {one.name: "" for one in columns if one.type is None},
    )


@dataclass
class _Scope:
    """What a query sees: tables, and above them the names of WITH, in small letters."""

    tables: Callable[[str], Columns | None]
    names: Mapping[str, Columns | UnknownTableError]
    sources: dict[str, Columns | UnknownTableError] = field(default_factory=dict)
    """The tables of FROM, by their alias or name."""

    def query(self, node: exp.Expr) -> Columns:
        """The columns of a SELECT, or of what combines several."""
        inside = self._with(_part(node, "with"))
        if isinstance(node, exp.SetOperation):
            left, right = inside.query(node.this), inside.query(node.expression)
            return [
                Column(one.name, _same([one.type, other.type]))
                for one, other in zip(left, right, strict=False)
            ]
        if isinstance(node, exp.Select):
            joined = inside._joined(node)
            return [*inside._projected(node, joined)]
        if isinstance(node, exp.Subquery):
            return _named(inside._subquery(node), node)
        if isinstance(node, exp.Values):
            return inside._values(node)
        raise UnknownTableError(None)

    def _with(self, names: exp.Expr | None) -> _Scope:
        known = dict(self.names)
        for entry in [] if names is None else names.expressions:
            # A recursive name reads itself: its columns are those of the first part.
            query = entry.this.this if _reads(entry) else entry.this
            found: Columns | UnknownTableError
            try:
                found = _named(_Scope(self.tables, known).query(query), entry)
            except UnknownTableError as problem:
                found = problem
            known[entry.alias.casefold()] = found
        return _Scope(self.tables, known)

    # --- FROM ---------------------------------------------------------------------------------

    def _joined(self, node: exp.Expr) -> list[_Source]:
        """The sources of FROM with their joins, in the order of `*`."""
        found: list[_Source] = []
        from_ = _part(node, "from")
        if from_ is not None:
            found = self._source(from_.this)
        for join in node.args.get("joins") or ():
            other = self._source(join.this)
            if join.kind in ("SEMI", "ANTI"):
                continue
            keys = [one.name.casefold() for one in join.args.get("using") or ()]
            if join.method == "NATURAL":
                other = [(name, UnknownTableError(name)) for name, _ in other]
            found = _on_keys(found, other, keys) if keys else found + other
        for lateral in node.args.get("laterals") or ():
            made = lateral.args["alias"]
            columns = [Column(one.name, None) for one in made.args.get("columns") or ()]
            self.sources[made.name.casefold()] = columns
            found.append((made.name, columns))
        return found

    def _source(self, node: exp.Expr) -> list[_Source]:
        """A source of FROM, and what is joined to it in one parenthesis."""
        if isinstance(node, exp.Subquery) and not node.alias and not _is_query(node.this):
            return self._source(node.this)
        columns: Columns | UnknownTableError
        name = _called(node)
        try:
            columns = _named(self._columns_of_source(node), node)
        except UnknownTableError as problem:
            columns = problem
        self.sources[name.casefold()] = columns
        found = [(name, columns)]
        more = exp.Select(joins=node.args.get("joins"), laterals=node.args.get("laterals"))
        return found + self._joined(more)

    def _columns_of_source(self, node: exp.Expr) -> Columns:
        if node.args.get("pivots"):
            raise UnknownTableError(None)
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if isinstance(node, exp.Values):
            return self._values(node)
        if not isinstance(node, exp.Table):
            raise UnknownTableError(None)
        if isinstance(node.this, exp.Identifier):
            name = ".".join(part.name for part in node.parts)
            found = self.names.get(name.casefold()) or self.tables(name)
            if found is None:
                raise UnknownTableError(name)
            if isinstance(found, UnknownTableError):
                raise found
            return found
        if isinstance(node.this, exp.Anonymous) and node.this.name.casefold() == "range":
            return [Column("id", DataType.LONG)]
        raise UnknownTableError(None)

    def _subquery(self, node: exp.Subquery) -> Columns:
        return _Scope(self.tables, self.names).query(node.this)

    def _values(self, node: exp.Values) -> Columns:
        rows = [[self.type(one) for one in row.expressions] for row in node.expressions]
        found = []
        for number, types in enumerate(zip(*rows, strict=False), start=1):
            found.append(Column(f"col{number}", _same(types)))
        return _named(found, node)

    # --- SELECT -------------------------------------------------------------------------------

    def _projected(self, node: exp.Select, joined: list[_Source]) -> Iterator[Column]:
        for one in node.expressions:
            star = one if isinstance(one, exp.Star) else one.this
            if isinstance(star, exp.Star) and isinstance(one, exp.Star | exp.Column):
                of = one.table.casefold() if isinstance(one, exp.Column) else None
                taken = [source for source in joined if of in (None, source[0].casefold())]
                yield from self._all_columns(star, taken)
            else:
                name = one.alias or (one.name if isinstance(one, exp.Column) else "")
                yield Column(name, self.type(one)) if name else Column(one.sql("spark"), None)

    def _all_columns(self, star: exp.Star, sources: list[_Source]) -> Iterator[Column]:
        left_out = {one.name.casefold() for one in _part(star, "except") or ()}
        replaced = {one.alias.casefold(): one for one in star.args.get("replace") or ()}
        for _, columns in sources:
            if isinstance(columns, UnknownTableError):
                raise columns
            for one in columns:
                key = one.name.casefold()
                if key in replaced:
                    yield Column(one.name, self.type(replaced[key]))
                elif key not in left_out:
                    yield one

    # --- types --------------------------------------------------------------------------------

    def type(self, node: exp.Expr | None) -> DataType | None:
        """The type of an expression; None: not known."""
        match node:
            case exp.Cast():
                return _written(node.to)
            case exp.Column():
                return self._of_column(node)
            case exp.Alias() | exp.Paren() | exp.Window() | exp.Neg():
                return self.type(node.this)
            case exp.IgnoreNulls() | exp.RespectNulls():
                return self.type(node.this)
            case exp.Literal():
                return DataType.STRING if node.is_string else _of_number(node.name)
            case exp.Coalesce():
                return _same([self.type(one) for one in (node.this, *node.expressions)])
            case exp.Case():
                results = [one.args["true"] for one in node.args["ifs"]]
                results += filter(None, [node.args.get("default")])
                return _same([self.type(one) for one in results])
            case exp.If():
                results = [node.args["true"], *filter(None, [node.args.get("false")])]
                return _same([self.type(one) for one in results])
            case exp.Sum() | exp.Avg():
                known = self.type(node.this)
                is_number = known is not None and known.is_numeric
                return aggregated_type(node.key.upper(), known) if known and is_number else None
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return _of_arithmetic(node, self.type(node.this), self.type(node.expression))
        for kinds, known in _ALWAYS:
            if isinstance(node, kinds):
                return known
        return self.type(node.this) if isinstance(node, _OF_ARGUMENT) else None

    def _of_column(self, node: exp.Column) -> DataType | None:
        key, table = node.name.casefold(), node.table.casefold()
        if node.args.get("db") or (table and table not in self.sources):
            return None  # a field of a STRUCT
        asked = [self.sources[table]] if table else [*self.sources.values()]
        known = [source for source in asked if not isinstance(source, UnknownTableError)]
        found = [one for source in known for one in source if one.name.casefold() == key]
        return _same([one.type for one in found]) if found else None


_OF_ARGUMENT = (
    *(exp.Max, exp.Min, exp.Lag, exp.Lead, exp.First, exp.Last, exp.FirstValue, exp.LastValue),
    *(exp.AnyValue, exp.Abs),
)
_ALWAYS: tuple[tuple[tuple[type[exp.Expr], ...], DataType], ...] = (
    ((exp.Count,), DataType.LONG),
    ((exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile), DataType.INT),
    ((exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean), DataType.BOOLEAN),
    ((exp.Lower, exp.Upper, exp.Trim), DataType.STRING),
    ((exp.TimestampTrunc,), DataType.TIMESTAMP),
    ((exp.TsOrDsToDate, exp.CurrentDate), DataType.DATE),
)


def _of_arithmetic(
    node: exp.Expr, left: DataType | None, right: DataType | None
) -> DataType | None:
    """The type of a sum, a product and the like of numbers that are no DECIMALs."""
    if left not in NUMBERS or right not in NUMBERS:
        return None
    if isinstance(node, exp.Div) or DataType.DOUBLE in (left, right):
        return DataType.DOUBLE
    if left in WHOLE_NUMBERS and right in WHOLE_NUMBERS:
        return max(left, right, key=WHOLE_NUMBERS.index)
    return left if left is right else None


def _of_number(text: str) -> DataType | None:
    if not text.isdecimal():
        return None
    return DataType.INT if int(text) < 2**31 else DataType.LONG


def _same(types: Iterable[DataType | None]) -> DataType | None:
    """The type that all of them are."""
    first, *more = types
    return first if all(one == first for one in more) else None


def _written(type: exp.Expr) -> DataType | None:
    """A type as CAST names it; None where MATCH_RECOGNIZE has none."""
    text = type.sql("spark")
    # Spark's DECIMAL alone has no digits behind the point.
    text = {"DECIMAL": "DECIMAL(10, 0)", "TIMESTAMP_LTZ": "TIMESTAMP"}.get(text, text)
    try:
        return columns_of({"c": text}).types.get("c")
    except ValueError:
        return None


def _named(columns: Columns, node: exp.Expr) -> Columns:
    """Columns under the names that an alias gives them: `AS q(a, b)`."""
    alias = node.args.get("alias")
    names = [] if alias is None else [one.name for one in alias.args.get("columns") or ()]
    renamed = [Column(name, one.type) for name, one in zip(names, columns, strict=False)]
    return [*renamed, *columns[len(renamed) :]]


def _on_keys(left: list[_Source], right: list[_Source], keys: list[str]) -> list[_Source]:
    """Two sides of a join USING keys: these stand first, and once."""

    shared: list[Column] = []
    sides: list[_Source] = []
    for name, columns in (*left, *right):
        if not isinstance(columns, UnknownTableError):
            shared += [one for one in columns if one.name.casefold() in keys]
            columns = [one for one in columns if one.name.casefold() not in keys]
        sides.append((name, columns))
    first = {one.name.casefold(): one for one in reversed(shared)}
    return [("", [first.get(key, Column(key, None)) for key in keys]), *sides]


def _part(node: exp.Expr, name: str) -> Any:
    """A part whose name is a word of Python's: sqlglot writes `from` or, since 28, `from_`."""
    return node.args.get(f"{name}_") or node.args.get(name)


def _called(node: exp.Expr) -> str:
    alias: str = node.alias
    if alias or not isinstance(node, exp.Table):
        return alias
    return node.name


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Values) and not isinstance(node, exp.Table)


def _reads(entry: exp.Expr) -> bool:
    """Whether a name of WITH is a UNION that reads itself."""
    return isinstance(entry.this, exp.Union) and any(
        table.name.casefold() == entry.alias.casefold()
        for table in entry.this.expression.find_all(exp.Table)
    )
