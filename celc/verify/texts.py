"""The invariants of syntax trees, and of queries in core CEL."""

from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

from celc_runtime.values import decimals

from celc.core import formula as core
from celc.core.formula import DataType, Predicate, Quantified
from celc.core.terms import labels_chosen_from, labels_named
from celc.core.traversal import labels_bound, nodes_of, operands_of, parts_of, predicates_of
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.verify.violations import Violation, Violations

SPANS_NEST = "the span of a part lies within that of the whole"
IN_TEXT_ORDER = "the parts of a chain follow each other in the text"
QUERIES_NAMED = "a file has a query, and each of several queries has a name"


def syntax_tree(file: syntax.File, source: Source) -> Violations:
    """Spans nest, chains follow the order of the text, and queries have different names.

    All messages rely on the spans. The resolver relies on the names of queries. It also relies on
    the order of chains: "the first" in a message is the first in the text.
    """
    waiting: list[tuple[Any, Span]] = [(file, Span(0, len(source.text)))]
    while waiting:
        look()
        node, around = waiting.pop()
        if not around.start <= node.span.start <= node.span.end <= around.end:
            yield Violation(SPANS_NEST, f"{_place(node)} is a part of {around}")
        for name in node.__slots__:
            value = getattr(node, name)
            parts = [_placed(part) for part in (value if isinstance(value, tuple) else (value,))]
            nodes = [part for part in parts if part is not None]
            waiting += [(part, node.span) for part in nodes]
            for before, after in pairwise(nodes):
                if before.span.end > after.span.start:
                    yield Violation(IN_TEXT_ORDER, f"{_place(after)} follows {_place(before)}")
    if not file.queries:
        yield Violation(QUERIES_NAMED, "there is none")
    for query in file.queries:
        if query.name is None and len(file.queries) > 1:
            yield Violation(QUERIES_NAMED, f"{_place(query)} has no name")


def _placed(part: Any) -> Any:
    """The node with a span that a part stands for: of a link, its operand; None: no node."""
    if isinstance(part, syntax.Link | syntax.Joint):
        return part.operand
    return None if isinstance(part, Span) or not is_dataclass(part) else part


def _place(node: Any) -> str:
    return f"{type(node).__name__} at {node.span.start}-{node.span.end}"


# --- core CEL -------------------------------------------------------------------------------------

DEPTH = "a formula is no deeper than passes that recurse can take"
TYPES_DECLARED = "atoms and attributes are those of the query's streams"
LABELS_RESOLVED = "every label that a condition names is bound by a scope around it"
CLAUSE_LABELS = "a clause lists the labels that it names outside functions, each once"
TYPED = "the operands of a condition have the types that its operators take"
GAPS = "a sequence has at least two operands, and says of each gap whether it is contiguous"
OUTPUT_BOUND = "the formula binds the labels that SELECT keeps"
ITEMS_NAMED = "HAVING names items of TOTAL"
ALL_MATCHES = "TOTAL and COLLAPSED are about all matches"


def core_query(query: core.Query, max_depth: int) -> Violations:
    """Names are resolved, conditions are typed, and SELECT keeps labels that the formula binds.

    Normalisation looks for the scope that binds each label. Generated code compares the values of
    columns by their types.
    """
    yield from safe_query(query, max_depth)
    bound = labels_bound(query.formula)
    for item in query.output:
        for label in (item.label,) if isinstance(item, core.OutputLabel) else item.labels:
            if label not in bound:
                yield Violation(OUTPUT_BOUND, f"not '{label}'")
    if query.total is not None:
        yield from _total(query, query.total, bound)
    if (query.total is not None or query.collapsed) and (
        query.strategy != "ALL" or query.limit is not None or query.per_start is not None
    ):
        yield Violation(ALL_MATCHES, "something chooses among matches")


def _total(query: core.Query, total: core.Total, bound: frozenset[str]) -> Violations:
    """The items name labels of the formula and attributes of streams; HAVING names the items."""
    attributes = _attributes_of(query)
    for item in total.items:
        for node in nodes_of(item.value):
            match node:
                case core.TotalOf():
                    if node.label is not None and node.label not in bound:
                        yield Violation(OUTPUT_BOUND, f"not '{node.label}'")
                    taken = (node.attribute, node.read)
                    if node.attribute is not None and taken not in attributes:
                        yield Violation(TYPES_DECLARED, f"{_place(node)} reads {taken}")
                case _:
                    yield from _node_types(node, attributes)
    known = {item.name: item.value.type for item in total.items}
    for predicate in () if total.having is None else predicates_of(total.having):
        yield from _operands(predicate)
        for node in (one for operand in operands_of(predicate) for one in nodes_of(operand)):
            match node:
                case core.Variable():
                    if known.get(node.name) is not node.type:
                        yield Violation(ITEMS_NAMED, f"{_place(node)} is '{node.name}'")
                case _:
                    yield from _node_types(node, attributes)


def _attributes_of(query: core.Query) -> set[tuple[str, DataType]]:
    event_types = {one for stream in query.streams for one in stream.event_types}
    return {(one.name, one.type) for each in event_types for one in each.attributes}


def safe_query(query: core.Query, max_depth: int) -> Violations:
    """A query whose formula is safe. SELECT may keep a label whose branches are all gone."""
    event_types = {one for stream in query.streams for one in stream.event_types}
    attributes = _attributes_of(query)
    waiting = [(query.formula, labels_bound(query.formula), 1)]
    while waiting:
        look()
        formula, visible, depth = waiting.pop()
        if depth > max_depth:
            yield Violation(DEPTH, f"{_place(formula)} is at level {depth} of at most {max_depth}")
            return
        match formula:
            case core.Atom():
                if not formula.types or not event_types.issuperset(formula.types):
                    names = ", ".join(one.name for one in formula.types)
                    yield Violation(TYPES_DECLARED, f"{_place(formula)} reads ({names})")
            case core.Sequence():
                if len(formula.operands) != len(formula.contiguous) + 1 or not formula.contiguous:
                    count = len(formula.operands)
                    yield Violation(GAPS, f"{_place(formula)} has {count} operands")
            case core.Filter():
                for clause in formula.clauses:
                    yield from _clause(clause, visible, attributes)
            case _:
                pass
        scopes = _scopes_in(formula)
        for part in parts_of(formula):
            # By identity, because comparing formulas would read all of them.
            is_scope = any(part is one for one in scopes)
            sees = visible | labels_bound(part) if is_scope else visible
            waiting.append((part, sees, depth + 1))


def _scopes_in(formula: core.Formula) -> tuple[core.Formula, ...]:
    """The scopes of a formula. Conditions inside a scope see its own labels only."""
    match formula:
        case core.Rename() | core.Project() | core.Iteration() | core.Selector():
            return (formula.operand,)
        case core.Unless():
            return (formula.right,)
        case core.ThenFirst():
            return parts_of(formula)[1:]
        case core.Absence():
            return (formula.middle,)
        case core.AbsenceBefore() | core.AbsenceAfter():
            return (formula.absent,)
        case _:
            return ()


def _clause(
    clause: core.Clause, visible: frozenset[str], attributes: set[tuple[str, DataType]]
) -> Violations:
    chosen: dict[str, None] = {}
    for predicate in clause.predicates:
        look()
        chosen.update(dict.fromkeys(labels_chosen_from(predicate)))
        for label in sorted(labels_named(predicate) - visible):
            yield Violation(LABELS_RESOLVED, f"nothing binds '{label}' of {_place(predicate)}")
        yield from _types(predicate, attributes)
    named, others = clause.labels[: len(chosen)], clause.labels[len(chosen) :]
    if named != tuple(chosen) or not visible.issuperset(others):
        yield Violation(CLAUSE_LABELS, f"{_place(clause)} lists {clause.labels}")


def _types(predicate: Predicate, attributes: set[tuple[str, DataType]]) -> Violations:
    yield from _operands(predicate)
    for node in (one for operand in operands_of(predicate) for one in nodes_of(operand)):
        yield from _node_types(node, attributes)


def _operands(predicate: Predicate) -> Violations:
    if isinstance(predicate, Quantified):
        for one in predicates_of(predicate.condition):
            yield from _operands(one)
        return
    operands = operands_of(predicate)
    if len({operand.type for operand in operands}) > 1:
        names = " and ".join(operand.type.value for operand in operands)
        yield Violation(TYPED, f"{_place(predicate)} compares {names}")
    if isinstance(predicate, core.PatternMatch) and operands[0].type is not DataType.STRING:
        yield Violation(TYPED, f"{_place(predicate)} matches {operands[0].type.value}")


def _node_types(node: core.Expression, attributes: set[tuple[str, DataType]]) -> Violations:
    match node:
        case core.Arithmetic() if node.type.is_checked:
            operands_taken = (node.operator, node.left.type, node.right.type)
            right = core.TIME_OPERANDS.get(operands_taken) is node.type
        case core.Arithmetic() if isinstance(node.type, core.DecimalType):
            one, other = node.left.type, node.right.type
            right = isinstance(one, core.DecimalType) and isinstance(other, core.DecimalType)
            if isinstance(one, core.DecimalType) and isinstance(other, core.DecimalType):
                right = node.type is decimals.result_type(node.operator, one, other)
        case core.Arithmetic():
            taken = DataType.DOUBLE if node.operator == "/" else node.type
            right = node.left.type is taken is node.right.type
        case core.Negation() | core.Absolute():
            right = node.operand.type is node.type
        case core.Cast():
            right = node.operand.type is not node.type
        case core.AttributeValue(attribute=core.TYPE):
            right = node.type is DataType.STRING
        case core.AttributeValue() | core.Previous():
            if (node.attribute, node.type) not in attributes:
                name = f"{node.label}.{node.attribute}: {node.type.value}"
                yield Violation(TYPES_DECLARED, f"{_place(node)} is {name}")
            return
        case core.Aggregate():
            right = (node.attribute is None) == (node.function == "COUNT")
            right = right and (node.own is None) == (node.function != "OWN")
            for argument in zip(node.attributes, node.read, strict=bool(node.read)):
                if argument not in attributes:
                    yield Violation(TYPES_DECLARED, f"{_place(node)} reads {argument}")
        case core.Call() | core.Choice() | core.Conditional():
            right = True
        case core.OwnCall():
            lists = all(one.function == "LIST" for one in node.operands)
            right = lists and len(node.operands) == len(node.function.parameters)
        case core.Variable() | core.TotalOf() | core.TimeDifference():
            right = False
        case core.InRowPatterns():
            right = False
        case core.Constant():
            right = node.value is None or type(node.value) is _VALUES.get(node.type, int)
    if not right:
        yield Violation(TYPED, f"{_place(node)} has operands that do not give {node.type.value}")


_VALUES: dict[DataType, type] = {
    DataType.BOOLEAN: bool,
    DataType.FLOAT: float,
    DataType.DOUBLE: float,
    DataType.STRING: str,
    **dict.fromkeys((*core.WHOLE_NUMBERS, DataType.TIMESTAMP, DataType.DATE), int),
    **dict.fromkeys((DataType.TIMESTAMP_NTZ, DataType.INTERVAL), int),
}
