"""The YAML of a file of Sigma's rules → its documents, if pySigma reads their detections as they
are written.

pySigma's own reader takes the later one of two equal keys, and says of other things neither where
they are nor what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import yaml

from celc.diagnostics.errors import CelError, Diagnostics, error
from celc.diagnostics.source import Source, Span


class _Loader(yaml.CSafeLoader):
    """YAML in which no key of a mapping stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        known: set[tuple[str, str]] = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in known:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands here twice", key.start_mark
                )
            known.add(name)
        return super().construct_mapping(node, deep)


def documents_of(source: Source) -> list[Any] | CelError:
    """The documents of a file, or what in them is no rule of Sigma."""
    found = Diagnostics(source)
    try:
        loader = _Loader(source.text)
        documents = []
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            for place, message in _problems(node):
                start, end = place.start_mark.index, place.end_mark.index
                found.add(error("import-syntax", Span(start, max(start + 1, end)), message))
            documents.append(loader.construct_document(node))
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        at = mark.index if mark is not None else 0
        message = f"this is no YAML: {getattr(problem, 'problem', problem)}"
        return CelError(source, (error("import-syntax", Span(at, at + 1), message),))
    if not found.has_errors and all(one is None for one in documents):
        found.add(error("import-syntax", Span(0, 1), "there is no rule in this file"))
    return CelError(source, found.in_order()) if found.has_errors else documents


def _problems(node: yaml.Node) -> Iterator[tuple[yaml.Node, str]]:
    """What pySigma does not read, at its node."""
    if _tag(node) == "null":
        return
    if not isinstance(node, yaml.MappingNode):
        yield node, "a rule has fields such as title, logsource and detection"
        return
    for key, value in node.value:
        if key.value == "detection" and isinstance(value, yaml.MappingNode):
            for name, selection in value.value:
                if name.value != "condition":
                    yield from _of_selection(selection)


def _of_selection(node: yaml.Node) -> Iterator[tuple[yaml.Node, str]]:
    if isinstance(node, yaml.SequenceNode):
        for one in node.value:
            is_map = isinstance(one, yaml.MappingNode)
            yield from _of_selection(one) if is_map else _of_value(one)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if _tag(key) == "merge":
                continue
            if _tag(key) != "str":
                yield key, f"the name of a field is a text: '{key.value}' in quotes"
            listed = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for one in listed:
                yield from _of_value(one)
    else:
        yield from _of_value(node)


def _of_value(node: yaml.Node) -> Iterator[tuple[yaml.Node, str]]:
    if not isinstance(node, yaml.ScalarNode):
        yield node, "a field has one value, or a list of values"
    elif _tag(node) == "timestamp":
        yield node, f"this is a date in YAML; a text stands in quotes: '{node.value}'"
    elif _tag(node) == "float" and not math.isfinite(_float(node.value)):
        yield node, "a number is finite"


def _float(text: str) -> float:
    """A number of YAML, where it is not one that a colon divides."""
    return 0.0 if ":" in text else float(yaml.safe_load(text))


def _tag(node: yaml.Node) -> str:
    return str(node.tag).rpartition(":")[2]
