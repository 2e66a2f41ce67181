"""The rules of one file of Sigma → CREATE STREAM with the fields they name, and their queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from sigma.correlations import (
    SigmaCorrelationCondition,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaCorrelationType,
    SigmaRuleReference,
)
from sigma.exceptions import SigmaError
from sigma.rule import SigmaLogSource, SigmaRule

from celc.diagnostics.source import Source
from celc.interfaces.importing.fields import Fields
from celc.interfaces.importing.languages import Columns
from celc.interfaces.importing.names import query_name
from celc.interfaces.importing.places import Places
from celc.interfaces.importing.sigma.conditions import Detections
from celc.interfaces.importing.words import (
    Level,
    Words,
    attribute,
    event,
    joined,
    of_label,
    spelled,
)

_STREAM = "logs"

MANY = (SigmaCorrelationConditionOperator.GT, SigmaCorrelationConditionOperator.GTE)
"""The comparisons with a count that stay true once they are true: more events cannot undo them."""


@frozen
class Operands:
    """What a correlation takes its events from."""

    rules: Sequence[SigmaRuleReference]
    streams: Sequence[str]  # what stands behind FROM
    keys: Sequence[str]  # what stands behind PARTITION BY


@dataclass
class RulesOfFile:
    """The translation of the rules of one file."""

    source: Source
    columns: Columns
    clauses_of: Callable[[RulesOfFile, SigmaCorrelationRule, str], list[str]]
    """The clauses of the query for a correlation."""
    has_span: bool = False
    """Whether a query cuts time into spans, for which the order of events is named at the call."""
    places: Places = field(init=False)
    fields: Fields = field(init=False)
    detections: Detections = field(init=False)
    event_types: set[str] = field(default_factory=set)
    named: dict[str, dict[str, None]] = field(default_factory=dict)  # fields of each event type
    derived: dict[str, dict[str, str]] = field(default_factory=dict)  # aliases of each event type
    keys: dict[str, str] = field(
        default_factory=dict
    )  # of correlations, each with one of its fields
    stand_for: dict[str, dict[str, None]] = field(default_factory=dict)  # the fields of aliases
    queries: dict[str, list[str]] = field(default_factory=dict)
    _done: dict[int, str] = field(default_factory=dict)
    _windows: bool = True
    _sources: dict[str, str] = field(default_factory=dict)  # of each event type

    def __post_init__(self) -> None:
        self.places = Places(self.source)
        self.fields = Fields(self.places.diagnostics)
        self.detections = Detections(self.fields, self.places)

    def text(self, rules: Sequence[SigmaRule | SigmaCorrelationRule]) -> str | None:
        """The file of CEL; None where there are no rules. Raises `CelError` with all errors."""
        self.fields.kinds[self.columns.time] = "TIMESTAMP"
        self.event_types = {_log_source(one.logsource) for one in detections(rules)}
        for rule in rules:
            self.query_of(rule)
        self._check_aliases()
        self.places.diagnostics.raise_errors()
        if not self.queries:
            return None
        options = [f"--type-column {self.columns.kind}"] if len(self.named) > 1 else []
        if not self._windows or self.has_span:
            options.append(f"--order-by {self.columns.time}")
        head = [f"-- compile with: {' '.join(options)}"] if options else []
        queries = [line for lines in self.queries.values() for line in (*lines, "")]
        return "\n".join([*head, self._declaration(), "", *queries])

    def query_of(self, rule: object) -> str:
        """The name of the query for a rule, which is added if it is not there."""
        if id(rule) in self._done:
            return self._done[id(rule)]
        assert isinstance(rule, SigmaRule | SigmaCorrelationRule)
        self.places.begin_rule(rule.title)
        taken = (*self.event_types, *self.queries, _STREAM)
        name = unused_name(query_name(rule.name or rule.title), taken)
        self._done[id(rule)] = name
        if isinstance(rule, SigmaRule):
            self._windows = False
            kind = self.event_type(rule)
            clauses = ["SELECT *", f"FROM {_STREAM}", f"WHERE {self._event(rule, kind, ())}"]
        else:
            clauses = self.clauses_of(self, rule, name)
        comments = _comments(rule)
        if any(one.startswith("LIMIT") for one in clauses):
            comments.append("-- At most one row in each time span: LIMIT says so.")
        self.add_query(name, comments, clauses)
        return name

    def add_query(self, name: str, comments: Sequence[str], clauses: Sequence[str]) -> None:
        """A query behind those that are there."""
        self.queries[name] = [*comments, f"QUERY {spelled(name)}:", *clauses]

    # --- what a correlation asks ------------------------------------------------------------------

    def operands(self, rule: SigmaCorrelationRule) -> Operands:
        """The rules that a correlation names, what it reads, and its keys."""
        keys = list(rule.group_by or ())
        if not rule.referenced_rules:
            self.places.wrong("rules", "a correlation names the rules whose events it takes")
        if self.columns.kind in keys:
            self.places.wrong(
                self.columns.kind, f"'{self.columns.kind}' is the column of the event types here"
            )
        streams: dict[str, None] = {}
        for reference in rule.referenced_rules:
            one = reference.rule
            if isinstance(one, SigmaCorrelationRule):
                streams.setdefault(spelled(self.query_of(one)))
                self.places.begin_rule(rule.title)
                self._check_rows(one, reference.reference, keys)
            else:
                streams.setdefault(_STREAM)
                self._set_keys(rule, reference, keys)
        return Operands(rule.referenced_rules, list(streams), keys)

    def _set_keys(
        self, rule: SigmaCorrelationRule, reference: SigmaRuleReference, keys: Sequence[str]
    ) -> None:
        """The events of a rule have the keys: fields, or aliases of fields."""
        assert isinstance(reference.rule, SigmaRule)
        kind = self.event_type(reference.rule)
        aliases = {one.alias: one.mapping for one in rule.aliases}
        for key in keys:
            if key not in aliases:
                self._use(kind, key)
                self.keys[key] = key
                continue
            name = aliases[key].get(reference)
            if name is None:
                self.places.wrong(key, f"the alias '{key}' has no field of '{reference.reference}'")
                continue
            self._use(kind, name)
            self.keys.setdefault(key, name)
            self.stand_for.setdefault(key, {}).setdefault(name)
            if name == key:
                continue
            known = self.derived.setdefault(kind, {}).setdefault(key, name)
            if known != name:
                self.places.wrong(
                    key,
                    f"the alias '{key}' stands for '{known}' and for '{name}' of events of one log "
                    "source, and they have one key here",
                )

    def _check_rows(self, rule: SigmaCorrelationRule, name: str, keys: Sequence[str]) -> None:
        """The rows of a correlation can be events of another one, and have its keys."""
        condition = rule.condition
        if rule.type is SigmaCorrelationType.EVENT_COUNT and not (
            isinstance(condition, SigmaCorrelationCondition) and condition.op in MANY
        ):
            self.places.wrong(
                name, f"'{name}' counts few events, span by span, and such rows are no events"
            )
        for key in keys:
            if key not in (rule.group_by or ()):
                self.places.wrong(key, f"the rows of '{name}' have no '{key}', only its 'group-by'")

    def use(self, rules: Sequence[SigmaRuleReference], name: str) -> None:
        """A field of the events of rules is named."""
        for one in rules:
            if isinstance(one.rule, SigmaRule):
                self._use(self.event_type(one.rule), name)
            else:
                self.places.wrong(
                    name, f"'{one.reference}' is a correlation, and has no such field"
                )

    def labels(self, rules: Sequence[SigmaRuleReference]) -> list[str]:
        """Labels of the events of rules, by the rules' names."""
        names = [query_name(one.rule.name or one.rule.title) for one in rules]
        many = Counter(names)
        taken = (*self.event_types, *self.queries)
        return [
            unused_name(
                f"{name}_{names[: place + 1].count(name)}" if many[name] > 1 else name, taken
            )
            for place, name in enumerate(names)
        ]

    def operand(self, reference: SigmaRuleReference, label: str, keys: Sequence[str]) -> str:
        """An event of a rule, or a row of a correlation, as an operand; it has the keys."""
        rule = reference.rule
        if isinstance(rule, SigmaCorrelationRule):
            name = self.query_of(rule)
            return event(name, label)
        return self._event(rule, label, keys)

    def event_type(self, rule: SigmaRule) -> str:
        """The type of a rule's events: the category of its log source, or product and service."""
        kind = _log_source(rule.logsource)
        self.named.setdefault(kind, {})
        source = _words_of(rule.logsource)
        known = self._sources.setdefault(kind, source)
        if known != source:
            self.places.wrong(
                source.split("/")[-1],
                f"the log sources '{known}' and '{source}' would both be the event type '{kind}'",
                "write their rules into two files",
            )
        return kind

    def _event(self, rule: SigmaRule, label: str, keys: Sequence[str]) -> str:
        kind = self.event_type(rule)
        self.detections.used = {}
        parts = []
        for one in rule.detection.parsed_condition:
            try:
                parts.append(self.detections.condition(one.parsed))
            except SigmaError as problem:
                self.places.wrong(one.condition, str(problem.args[0]))
        for name in self.detections.used:
            self._use(kind, name)
        needed = [Words(f"{attribute(key)} IS NOT NULL", Level.COMPARISON) for key in keys]
        condition = joined([joined(parts, Level.OR), *needed], Level.AND)
        return event(kind, label, [of_label(label, condition)])

    def _use(self, kind: str, name: str) -> None:
        self.fields.name(name, self.places.of_field(name))
        self.named.setdefault(kind, {}).setdefault(name)

    def _check_aliases(self) -> None:
        """The fields that an alias stands for have one type, and none of them is called so."""
        for alias, names in self.stand_for.items():
            types = {kind for kind in map(self.fields.kind, names) if kind is not None}
            if len(types) > 1:
                self.places.wrong(alias, f"the fields of the alias '{alias}' have not one type")
            elif types:
                self.fields.kinds.update(dict.fromkeys(names, *types))
        for kind, aliases in self.derived.items():
            for alias in aliases:
                if alias in self.named[kind]:
                    self.places.wrong(
                        alias, f"the alias '{alias}' is also a field of the events '{kind}'"
                    )

    def _declaration(self) -> str:
        events = []
        for kind, names in self.named.items():
            fields = [one for one in self.fields.declared(names) if one[0] != self.columns.time]
            listed = [f"{attribute(name)}: {type}" for name, type in fields]
            listed += [
                f"{attribute(alias)}: {self.fields.kind(name) or 'STRING'} = {attribute(name)}"
                for alias, name in self.derived.get(kind, {}).items()
            ]
            listed += [
                # PARTITION BY asks for the keys of all event types.
                f"{attribute(key)}: {self.fields.kind(name) or 'STRING'} = NULL"
                for key, name in self.keys.items()
                if key not in (*names, *self.derived.get(kind, {}), self.columns.time)
            ]
            listed.append(f"{attribute(self.columns.time)}: TIMESTAMP")
            events.append(f"EVENT {spelled(kind)} {{ {', '.join(listed)} }}")
        return f"CREATE STREAM {_STREAM} {{ {', '.join(events)} }}"


def detections(rules: Iterable[SigmaRule | SigmaCorrelationRule]) -> Iterator[SigmaRule]:
    """The rules that are no correlations, and those that correlations name."""
    for rule in rules:
        if isinstance(rule, SigmaRule):
            yield rule
        else:
            yield from detections(one.rule for one in rule.referenced_rules)


def _log_source(source: SigmaLogSource) -> str:
    return query_name(_words_of(source))


def _words_of(source: SigmaLogSource) -> str:
    """The category; without one product and service."""
    return source.category or "/".join(filter(None, (source.product, source.service)))


def _comments(rule: SigmaRule | SigmaCorrelationRule) -> list[str]:
    lines = [rule.title, *(rule.description or "").splitlines()]
    if rule.level is not None:
        lines.append(f"level: {rule.level.name.lower()}")
    return [f"-- {line.strip()}" for line in lines if line.strip()]
