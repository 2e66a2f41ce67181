"""Files, declarations, queries and clauses, from the rules of the grammar upwards.

See `celc.parse.formulas` for how the parser calls these methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.conditions import COMPARISONS, Values, name_of
from celc.parse.durations import UNITS
from celc.parse.formulas import STRATEGY_SYNONYMS, FormulaBuilder
from celc.parse.mistakes import trees as tree_errors
from celc.parse.mistakes.tokens import is_full
from celc.parse.syntax import Name
from celc.parse.tokens import Token, name_text
from celc.parse.types import type_word


@dataclass(slots=True)
class _Draft:
    """A query whose clauses are still being read."""

    select: syntax.SelectClause
    span: Span
    streams: tuple[Name, ...] | None = None
    formula: syntax.Formula | None = None
    partition_by: tuple[syntax.Key, ...] | None = None
    window: syntax.Window | None = None
    consume: syntax.ConsumeClause | None = None
    limit: syntax.LimitClause | None = None
    for_each: Name | None = None
    per: syntax.PerClause | None = None
    having: syntax.HavingClause | None = None
    confidence: syntax.ConfidenceClause | None = None


@frozen
class _FlatItems:
    """The items of SELECT FLAT, as the parser has read them."""

    items: syntax.AllItems | syntax.NoItems | list[syntax.SelectItem]


class QueryBuilder(FormulaBuilder):
    """The methods for a whole file; one builder serves one file."""

    def file(self, c: Values) -> syntax.File:
        return self._file(c[0], c[1] if len(c) > 1 else [])

    def formula_file(self, c: Values) -> syntax.File:
        self.end_of_query()
        formula = c[-1]
        query = syntax.Query(None, None, None, formula, None, None, None, None, formula.span)
        return self._file(c[0], [query])

    def _file(self, declared: Values, queries: list[syntax.Query]) -> syntax.File:
        streams = tuple(one for one in declared if isinstance(one, syntax.StreamDeclaration))
        aggregates = tuple(one for one in declared if isinstance(one, syntax.AggregateDeclaration))
        sets = tuple(one for one in declared if isinstance(one, syntax.ParametersDeclaration))
        own = tuple(one for one in declared if isinstance(one, syntax.FunctionDeclaration))
        return syntax.File(streams, tuple(queries), self._whole(), aggregates, sets, own)

    def _whole(self) -> Span:
        return Span(0, len(self.diagnostics.source.text))

    def stream_declaration(self, c: Values) -> syntax.StreamDeclaration:
        times = c[3] if len(c) == 7 else None
        span = c[0].span.to(c[-1].span)
        declared = syntax.StreamDeclaration(name_of(c[2]), tuple(c[-2]), span, times)
        self._note_stream(declared)
        return declared

    def note_streams(self, declared: Sequence[syntax.StreamDeclaration]) -> None:
        """Take streams for declared that another file has declared in the same words."""
        for stream in declared:
            for event in stream.events:
                self._note_event(event)
            self._note_stream(stream)

    def _note_stream(self, declared: syntax.StreamDeclaration) -> None:
        self._streams[declared.name.text] = tuple(event.name.text for event in declared.events)

    def _note_event(self, declared: syntax.EventDeclaration) -> None:
        name, attributes = declared.name.text, declared.attributes
        self._attributes[name] = frozenset(one.name.text for one in attributes)
        times = (
            one.name.text for one in attributes if type_word(one.type.name.text) == "TIMESTAMP"
        )
        self._times[name] = tuple(times)

    def times(self, c: Values) -> syntax.UncertainClause:
        names = tuple(name_of(token) for token in c[2])
        weights = name_of(c[7]) if len(c) == 8 else None
        return syntax.UncertainClause(names, c[5], weights, c[0].span.to(c[-1].span))

    def lasting(self, c: Values) -> syntax.LastingClause:
        names = tuple(name_of(token) for token in c[2])
        return syntax.LastingClause(names, c[0].span.to(c[3].span))

    def event_declaration(self, c: Values) -> syntax.EventDeclaration:
        attributes = tuple(c[3]) if len(c) == 5 else ()
        declared = syntax.EventDeclaration(name_of(c[1]), attributes, c[0].span.to(c[-1].span))
        self._note_event(declared)
        return declared

    def derived_declaration(self, c: Values) -> syntax.AttributeDeclaration:
        return syntax.AttributeDeclaration(name_of(c[0]), c[2], c[0].span.to(c[4].span), value=c[4])

    def attribute_declaration(self, c: Values) -> syntax.AttributeDeclaration:
        return syntax.AttributeDeclaration(name_of(c[0]), c[2], c[0].span.to(c[2].span))

    def type(self, c: Values) -> syntax.WrittenType:
        return syntax.WrittenType(c[0], (), (), c[0].span)

    def sized_type(self, c: Values) -> syntax.WrittenType:
        sizes = tuple(number.value for number in c[2])
        return syntax.WrittenType(c[0], sizes, (), c[0].span.to(c[3].span))

    def type_of_parts(self, c: Values) -> syntax.WrittenType:
        return syntax.WrittenType(c[0], (), tuple(c[2]), c[0].span.to(c[3].span))

    def type_name(self, c: Values) -> Name:
        words = " ".join((name_text(c[0]), *(token.text.upper() for token in c[1:])))
        return Name(words, c[0].span.to(c[-1].span))

    def type_field(self, c: Values) -> syntax.TypeField:
        return syntax.TypeField(name_of(c[0]), c[2], c[0].span.to(c[2].span))

    def parameters_declaration(self, c: Values) -> syntax.ParametersDeclaration:
        attributes = tuple(c[3]) if len(c) > 4 else ()
        self._sets[name_text(c[1])] = None
        valid = c[5] if len(c) == 6 else None
        span = c[0].span.to(c[-1].span)
        return syntax.ParametersDeclaration(name_of(c[1]), attributes, span, valid)

    def valid(self, c: Values) -> syntax.ValidClause:
        names = tuple(name_of(token) for token in c[2])
        return syntax.ValidClause(names, c[0].span.to(c[3].span))

    def aggregate_declaration(self, c: Values) -> syntax.AggregateDeclaration:
        # Names without a label are its parameters and its state.
        self._bare.clear()
        return syntax.AggregateDeclaration(
            name_of(c[1]),
            tuple(c[3]),
            c[6],
            tuple(c[8]),
            tuple(c[10]),
            c[12],
            c[0].span.to(c[12].span),
        )

    def function_declaration(self, c: Values) -> syntax.FunctionDeclaration:
        given = self.type([c[6]])
        span = c[0].span.to(given.span)
        return syntax.FunctionDeclaration(name_of(c[1]), tuple(c[3]), given, span)

    def array(self, c: Values) -> syntax.WrittenType:
        written: syntax.WrittenType = c[0]
        return written

    def state(self, c: Values) -> syntax.StateDeclaration:
        return syntax.StateDeclaration(c[0], c[2], c[0].span.to(c[2].span))

    def step(self, c: Values) -> syntax.StepDeclaration:
        return syntax.StepDeclaration(name_of(c[0]), c[2], c[0].span.to(c[2].span))

    def unnamed_query(self, c: Values) -> syntax.Query:
        return self._finished(None, c[0].span, c[0])

    def named_query(self, c: Values) -> syntax.Query:
        return self._finished(name_of(c[1]), c[0].span, c[3])

    def _finished(self, name: Name | None, start: Span, draft: _Draft) -> syntax.Query:
        parts = {
            (one if isinstance(one, Name) else one.names[0]).text
            for one in draft.partition_by or ()
            if not isinstance(one, syntax.KeyExpression)
        }
        for label, renamed in self._renamed:
            if label.text not in parts:
                # Attributes of PARTITION BY are not labels; a later stage reports that.
                self.report(tree_errors.label_renamed_in_select(label, renamed))
        self.end_of_query()
        assert draft.formula is not None
        return syntax.Query(
            name=name,
            select=draft.select,
            streams=draft.streams,
            formula=draft.formula,
            partition_by=draft.partition_by,
            window=draft.window,
            consume=draft.consume,
            limit=draft.limit,
            span=start.to(draft.span),
            per=draft.per,
            for_each=draft.for_each,
            having=draft.having,
            confidence=draft.confidence,
        )

    def select(self, c: Values) -> _Draft:
        is_flat = isinstance(c[-1], _FlatItems)
        items = c[-1].items if is_flat else c[-1]
        end = items[-1].span if isinstance(items, list) else items.span
        span = c[0].span.to(end)
        word = c[1] if len(c) == 3 else None
        clause = syntax.SelectClause(
            strategy=STRATEGY_SYNONYMS.get(word.type, word.type) if word else None,
            strategy_span=word.span if word else None,
            items=tuple(items) if isinstance(items, list) else items,
            span=span,
            flat=is_flat,
        )
        return _Draft(clause, span)

    def select_per_start(self, c: Values) -> _Draft:
        draft = self.select([c[0], c[2]])
        draft.select = replace(draft.select, per_start=c[1])
        return draft

    def select_together(self, c: Values) -> _Draft:
        word, *choices = sorted(c[1:-1], key=_is_choice)
        draft = self.select([c[0], c[-1]])
        select = replace(draft.select, together=syntax.Together(word.type, word.span))
        for choice in choices:
            if isinstance(choice, syntax.PerStart):
                select = replace(select, per_start=choice)
            else:
                strategy = STRATEGY_SYNONYMS.get(choice.type, choice.type)
                select = replace(select, strategy=strategy, strategy_span=choice.span)
        draft.select = select
        if word.type == "TOTAL":
            # AS names a total here; a later stage reports that.
            self._renamed.clear()
        return draft

    def end_of_start(self, c: Values) -> syntax.PerStart:
        return syntax.PerStart(c[0].type, False, c[0].span)

    def disjoint(self, c: Values) -> syntax.PerStart:
        return syntax.PerStart(c[0].end, True, c[0].span.to(c[1].span))

    def flat_items(self, c: Values) -> _FlatItems:
        return _FlatItems(c[1])

    def all_items(self, c: Values) -> syntax.AllItems:
        return syntax.AllItems(c[0].span)

    def no_items(self, c: Values) -> syntax.NoItems:
        return syntax.NoItems(c[0].span)

    def item(self, c: Values) -> syntax.SelectItem:
        name = name_of(c[2]) if len(c) == 3 else None
        label = self.taken_as_label(c[0])
        if label is None:
            span = c[0].span.to(c[-1].span)
            return syntax.ExpressionItem(c[0], name, span)
        span = label.span if name is None else label.span.to(name.span)
        if name is not None:
            self._renamed.append((label, name))
        return syntax.LabelItem(label, None, span)

    def label_item(self, c: Values) -> syntax.LabelItem:
        attributes = tuple(name_of(token) for token in c[2])
        return syntax.LabelItem(name_of(c[0]), attributes, c[0].span.to(c[3].span))

    def from_streams(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.streams = tuple(name_of(token) for token in c[2])
        self._read = tuple(name.text for name in draft.streams)
        return draft

    def for_each(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.for_each = name_of(c[3])
        return draft

    def where(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.formula = c[2]
        draft.span = draft.span.to(c[2].span)
        return draft

    def partition(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.partition_by = tuple(c[3])
        draft.span = draft.span.to(c[3][-1].span)
        return draft

    def key(self, c: Values) -> Name | syntax.KeyExpression:
        value = c[0]
        if syntax.is_bare_name(value):
            return value.attribute
        if isinstance(value, syntax.BooleanLiteral | syntax.NullLiteral):
            # Alone it is an attribute of that name.
            return Name(self.diagnostics.source.slice(value.span), value.span)
        return syntax.KeyExpression(value, value.span)

    def alternatives_key(self, c: Values) -> syntax.Alternatives:
        names = tuple(name_of(token) for token in c[1])
        return syntax.Alternatives(names, c[0].span.to(c[2].span))

    def within(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.window = replace(c[2], span=c[1].span.to(c[2].span))
        draft.span = draft.span.to(c[2].span)
        return draft

    def events_window(self, c: Values) -> syntax.EventsWindow:
        return syntax.EventsWindow(c[0], c[0].span.to(c[1].span))

    def value_window(self, c: Values) -> syntax.ValueWindow:
        return syntax.ValueWindow(c[0], name_of(c[2]), c[0].span.to(c[3].span))

    def duration_window(self, c: Values) -> syntax.DurationWindow:
        parts = tuple(c[0])
        span = parts[0].span.to(parts[-1].span)
        if len(c) == 1:
            return syntax.DurationWindow(parts, None, span)
        return syntax.DurationWindow(parts, name_of(c[2]), span.to(c[3].span))

    def duration_part(self, c: Values) -> syntax.DurationPart:
        unit = Name(name_text(c[1]).upper(), c[1].span)
        is_known = unit.text in UNITS or c[1].flawed
        if not is_known and not is_full(self.diagnostics):
            number = self.diagnostics.source.slice(c[0].span)
            self.report(tree_errors.unknown_unit(number, c[1].text, c[0].span.to(c[1].span)))
        return syntax.DurationPart(c[0], unit, c[0].span.to(c[1].span))

    def confidence(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        span = c[1].span.to(c[4].span)
        draft.confidence = syntax.ConfidenceClause(
            COMPARISONS.get(c[3].text, c[3].text), c[4], span
        )
        draft.span = draft.span.to(span)
        return draft

    def consume(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.consume = syntax.ConsumeClause(c[3].type, c[1].span.to(c[3].span))
        draft.span = draft.span.to(c[3].span)
        return draft

    def per(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.per = _per(c[1], c[2])
        draft.span = draft.span.to(draft.per.span)
        return draft

    def having(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        draft.having = syntax.HavingClause(c[2], c[1].span.to(c[2].span))
        draft.span = draft.span.to(c[2].span)
        return draft

    def limit(self, c: Values) -> _Draft:
        draft: _Draft = c[0]
        per = None
        if len(c) > 3:
            per = (
                c[4]
                if isinstance(c[4], syntax.IntegerLiteral | syntax.DoubleLiteral)
                else _per(c[3], c[4])
            )
        span = c[1].span.to(c[-1].span)
        draft.limit = syntax.LimitClause(c[2], span, per)
        draft.span = draft.span.to(span)
        return draft


def _per(word: Token, group: Token | syntax.Window) -> syntax.PerClause:
    span = word.span.to(group.span)
    if isinstance(group, Token):
        return syntax.PerClause("END" if group.type == "END" else "PARTITION", span)
    return syntax.PerClause(group, span)


def _is_choice(word: Token | syntax.PerStart) -> bool:
    """Whether a word is a choice that cannot stand beside TOTAL or COLLAPSED."""
    return isinstance(word, syntax.PerStart) or word.type not in ("TOTAL", "COLLAPSED")
