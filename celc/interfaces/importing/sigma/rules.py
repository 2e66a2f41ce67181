"""Files of Sigma rules → files of CEL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaError, SigmaRuleLocation
from sigma.policy import SigmaPolicy
from sigma.policy.regex_engine import PythonRegexEngine
from sigma.rule import SigmaRule

from celc.diagnostics.errors import CelError, error, render_all
from celc.diagnostics.source import Source
from celc.interfaces.importing.languages import Columns, Translated
from celc.interfaces.importing.places import Places
from celc.interfaces.importing.sigma.correlations import clauses_of
from celc.interfaces.importing.sigma.documents import documents_of
from celc.interfaces.importing.sigma.examples import EXEMPLARS, tests_of
from celc.interfaces.importing.sigma.rules_of_file import RulesOfFile

Rule: TypeAlias = SigmaRule | SigmaCorrelationRule

_POLICY = SigmaPolicy(regex_engine=PythonRegexEngine())
# celc tells what RE2 does not know itself; pySigma's RE2 writes to standard error besides.


def texts_of(
    sources: Sequence[Source], columns: Columns
) -> Iterator[tuple[Source, Translated | CelError]]:
    """For each file of rules its text in CEL, not yet in its layout, and the tests of its examples,
    or why there is none.

    A correlation finds the rules that it names in all files. A rule that only a correlation needs
    has no query of its own, and a file with nothing else no text.
    """
    read = [_read(source) for source in sources]
    wrong = {one.source.name: one for one in read if isinstance(one, CelError)}
    collections = [one for one in read if isinstance(one, SigmaCollection)]
    try:
        rules = SigmaCollection.merge(collections).rules if collections else []
    except SigmaError as problem:
        # A name that no rule has: the file that it stands in is found by the word.
        for source in sources:
            wrong.setdefault(source.name, _problem(source, ("", problem)))
        rules = []
    for source in sources:
        if source.name in wrong:
            yield source, wrong[source.name]
            continue
        own = [one for one in rules if one.source and str(one.source.path) == source.name]
        twice = _problem_of(own, rules)
        if twice is not None:
            title, message = twice
            yield source, _problem(source, (title, SigmaError(message)))
            continue
        file = RulesOfFile(source, columns, clauses_of)
        try:
            text = file.text([one for one in own if one._output])
        except CelError as problem:
            yield source, problem
            continue
        if text is not None:
            tests = tests_of(file, own)
            told = render_all(source, file.places.diagnostics.in_order())
            yield source, Translated(text, tests, told)


def _read(source: Source) -> SigmaCollection | CelError:
    documents = documents_of(source)
    if isinstance(documents, CelError):
        return documents
    try:
        found = SigmaCollection.from_dicts(
            [_with_examples(one) for one in documents],
            collect_errors=True,
            source=SigmaRuleLocation(source.name),  # type: ignore[arg-type]
            collect_filters=True,  # `merge` applies them, to the rules of all files
            resolve_references=False,
            policy=_POLICY,
        )
    except (SigmaError, AttributeError, TypeError) as problem:
        return _problem(source, ("", problem))
    of_rules = [(str(rule.title), one) for rule in found.rules for one in rule.errors]
    others = [one for one in found.errors if all(one is not other for _, other in of_rules)]
    problems = [*of_rules, *(("", one) for one in others)]
    return _problem(source, *problems) if problems else found


def _problem_of(own: Sequence[Rule], rules: Sequence[Rule]) -> tuple[str, str] | None:
    """The title of a rule of a file and what is wrong with its name or with the rules it names."""
    names = Counter(one.name for one in rules if one.name)
    for rule in own:
        if rule.name and names[rule.name] > 1:
            return rule.title, f"'{rule.name}' is the name of several rules"
        if isinstance(rule, SigmaCorrelationRule) and any(one is rule for one in _read_by(rule)):
            return rule.title, f"the correlation '{rule.title}' reads its own rows"
    return None


def _read_by(rule: SigmaCorrelationRule) -> Iterator[Rule]:
    """The rules that a correlation reads, directly or not."""
    known: set[int] = set()
    found: list[Rule] = [rule]
    while found:
        last = found.pop()
        for one in last.referenced_rules if isinstance(last, SigmaCorrelationRule) else ():
            if id(one.rule) not in known:
                known.add(id(one.rule))
                found.append(one.rule)
                yield one.rule


def _with_examples(document: Any) -> Any:
    """A rule with its examples beside its other fields: pySigma leaves out `custom_attributes`."""
    nested = document.get("custom_attributes") if isinstance(document, dict) else None
    if isinstance(nested, dict) and EXEMPLARS in nested:
        return {EXEMPLARS: nested[EXEMPLARS], **document}
    return document


def _problem(source: Source, *problems: tuple[str, Exception]) -> CelError:
    """What pySigma says, each with the title of its rule or without one."""
    places = Places(source)
    for title, one in problems:
        places.begin_rule(title)
        text = str(one.args[0]) if one.args else type(one).__name__
        words = [word for word in re.findall(r"'([^']+)'", text) if word in source.text]
        place = places.of(words[0]) if words else places.of(title)
        places.diagnostics.add(error("import-syntax", place, text))
    return CelError(source, places.diagnostics.in_order())
