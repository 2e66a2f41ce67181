"""celc as a backend of pySigma: found, with pipelines, and with errors as pySigma has them."""

from __future__ import annotations

import pytest
from sigma.collection import SigmaCollection
from sigma.exceptions import SigmaFeatureNotSupportedByBackendError
from sigma.plugins import InstalledSigmaPlugins
from sigma.processing.pipeline import ProcessingItem, ProcessingPipeline, QueryPostprocessingItem
from sigma.processing.postprocessing import EmbedQueryTransformation
from sigma.processing.transformations import FieldMappingTransformation

from celc.diagnostics.source import Source
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import COLUMNS, Translated
from celc.interfaces.importing.sigma.backend import CelcBackend

_RULES = """
title: Shell
name: shell
logsource: {category: start}
detection: {s: {Image|endswith: '\\sh'}, condition: s}
---
title: Many shells
correlation: {type: event_count, rules: shell, timespan: 1m, condition: {gte: 3}}
---
title: Word
logsource: {category: start}
detection: {k: [word], condition: k}
"""
_GOOD = _RULES.rpartition("---")[0]


def test_pysigma_finds_the_backend() -> None:
    assert InstalledSigmaPlugins.autodiscover().backends["celc"] is CelcBackend


def test_rules_are_what_the_command_makes_of_them() -> None:
    ((_, made),) = imported("sigma", [Source("rules.yml", _GOOD)], COLUMNS["sigma"])
    assert isinstance(made, Translated)
    text = made.text
    assert CelcBackend().convert(SigmaCollection.from_yaml(_GOOD)) == text
    assert "[ts]" in CelcBackend(time_column="ts").convert(SigmaCollection.from_yaml(_GOOD))
    given: list[str] = []
    rules = SigmaCollection.from_yaml(_GOOD)
    kept = CelcBackend().convert(rules, callback=lambda *of: given.append(of[4]))
    assert (kept, given) == ([], [text])


def test_a_pipeline_renames_fields_and_changes_no_text() -> None:
    renamed = ProcessingItem(FieldMappingTransformation({"Image": "process.executable"}))
    rules = SigmaCollection.from_yaml(_GOOD)
    text = CelcBackend(ProcessingPipeline([renamed])).convert(rules)
    assert "`process.executable`: STRING" in text
    after = [QueryPostprocessingItem(EmbedQueryTransformation("a", "b"))]
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match="must not change the text"):
        CelcBackend(ProcessingPipeline(postprocessing_items=after)).convert(rules)


def test_what_cannot_be_translated_is_left_out_only_if_it_is_asked() -> None:
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match="'word' is searched in all"):
        CelcBackend().convert(SigmaCollection.from_yaml(_RULES))
    backend = CelcBackend(collect_errors=True)
    text = backend.convert(SigmaCollection.from_yaml(_RULES))
    assert text == CelcBackend().convert(SigmaCollection.from_yaml(_GOOD))
    assert [rule.title for rule, _ in backend.errors] == ["Word"]
