"""celc as a backend of pySigma: `sigma convert -t celc`, with the pipelines of other packages.

pySigma's backends write a query operator by operator. Here a rule is translated as `celc import`
translates it, once the pipelines have renamed its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import yaml
from sigma.collection import SigmaCollection
from sigma.conversion.base import Backend
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaError, SigmaFeatureNotSupportedByBackendError
from sigma.processing.pipeline import ProcessingPipeline
from sigma.rule import SigmaRule

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.interfaces.importing.languages import COLUMNS, Columns
from celc.interfaces.importing.layout import laid_out
from celc.interfaces.importing.sigma.correlations import clauses_of
from celc.interfaces.importing.sigma.rules_of_file import RulesOfFile

Rule: TypeAlias = SigmaRule | SigmaCorrelationRule


class CelcBackend(Backend):
    """Rules of Sigma → one file of CEL with a query of each.

    A rule that cannot be translated raises SigmaFeatureNotSupportedByBackendError with the message
    of `celc import`; with `collect_errors` it is left out, and stands in `errors`.
    """

    name: ClassVar[str] = "celc: queries of CEL over streams and tables, compiled to PySpark"
    identifier: ClassVar[str] = "celc"
    formats: ClassVar[dict[str, str]] = {"default": "one file of CEL with a query of each rule"}
    correlation_methods: ClassVar[dict[str, str] | None] = {"default": "queries of CEL"}

    def __init__(
        self,
        processing_pipeline: ProcessingPipeline | None = None,
        collect_errors: bool = False,
        time_column: str = COLUMNS["sigma"].time,
        kind_column: str = COLUMNS["sigma"].kind,
    ) -> None:
        super().__init__(processing_pipeline, collect_errors)
        self._columns = Columns(time_column, kind_column)

    def convert(
        self,
        rule_collection: SigmaCollection,
        output_format: str | None = None,
        correlation_method: str | None = None,
        callback: Callable[[Any, str | None, int, Any, Any], Any] | None = None,
    ) -> Any:
        """One text with all rules; with a callback, which gets a whole file for each rule, the list
        of what it returns."""
        self.init_processing_pipeline(output_format)
        pipeline = self.last_processing_pipeline
        if pipeline.postprocessing_items or pipeline.finalizers:
            message = "celc writes whole files: a pipeline must not change the text of a query"
            raise SigmaFeatureNotSupportedByBackendError(message)
        rule_collection.resolve_rule_references()
        for rule in rule_collection.rules:
            pipeline.apply(rule)
        asked = [one for one in rule_collection.rules if one._output]
        texts = [(one, self._text([one])) for one in asked]
        if callback is not None:
            answers = [callback(one, output_format, 0, None, text) for one, text in texts if text]
            return [one for one in answers if one is not None]
        return self._text([one for one, text in texts if text]) or ""

    def convert_rule(
        self,
        rule: SigmaRule,
        output_format: str | None = None,
        callback: Callable[[Any, str | None, int, Any, Any], Any] | None = None,
    ) -> list[Any]:
        """The file of one rule; none where only correlations need the rule."""
        found = self.convert(SigmaCollection([rule]), output_format, callback=callback)
        return found if isinstance(found, list) else [found] if found else []

    def _text(self, rules: Sequence[Rule]) -> str | None:
        """The file of some rules; None where there are none, or where one cannot be translated and
        errors are collected."""
        try:
            text = RulesOfFile(_source(rules), self._columns, clauses_of).text(rules)
            return text and laid_out("rules", text, self._columns)
        except CelError as problem:
            where = rules[0].source if len(rules) == 1 else None
            raised: SigmaError = SigmaFeatureNotSupportedByBackendError(str(problem), source=where)
        if not self.collect_errors:
            raise raised
        self.errors += [(one, raised) for one in rules]  # type: ignore[misc]
        return None


# Its other methods write the parts of a query, and nothing but Backend.convert calls them.
CelcBackend.__abstractmethods__ = frozenset()


def _source(rules: Sequence[Rule]) -> Source:
    """The file that rules stand in; where it is not there, their text."""
    path = rules[0].source.path if rules and rules[0].source else None
    alike = all(one.source and one.source.path == path for one in rules)
    if path is not None and alike and Path(path).is_file():
        return Source(str(path), Path(path).read_text(encoding="utf-8"))
    return Source("rules", yaml.safe_dump_all([one.to_dict() for one in rules], sort_keys=False))
