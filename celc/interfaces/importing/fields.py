"""The types of the fields that a rule names, found by what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from celc.diagnostics.errors import Diagnostics, Related, error
from celc.diagnostics.source import Span
from celc.resolve.types.tables import RESERVED_ATTRIBUTES

Kind = Literal["STRING", "LONG", "DOUBLE", "BOOLEAN", "TIMESTAMP"]

_NUMBERS: frozenset[Kind] = frozenset({"LONG", "DOUBLE"})

_KNOWN: dict[str, Kind] = {
    "destination.bytes": "LONG",
    "destination.packets": "LONG",
    "destination.port": "LONG",
    "event.duration": "LONG",
    "event.risk_score": "DOUBLE",
    "event.sequence": "LONG",
    "event.severity": "LONG",
    "file.size": "LONG",
    "http.request.bytes": "LONG",
    "http.response.bytes": "LONG",
    "http.response.status_code": "LONG",
    "network.bytes": "LONG",
    "network.packets": "LONG",
    "process.exit_code": "LONG",
    "process.interactive": "BOOLEAN",
    "process.parent.pid": "LONG",
    "process.pid": "LONG",
    "process.thread.id": "LONG",
    "source.bytes": "LONG",
    "source.packets": "LONG",
    "source.port": "LONG",
}
"""Fields of the Elastic Common Schema that are no texts and that rules often name only as keys
(https://www.elastic.co/docs/reference/ecs/ecs-field-reference)."""


@dataclass
class Fields:
    """The fields of one file: their types, and where each type was found."""

    diagnostics: Diagnostics
    kinds: dict[str, Kind] = field(default_factory=dict)
    _found: dict[str, Span] = field(default_factory=dict)

    def name(self, name: str, span: Span) -> None:
        """A field is named; celc has columns that no attribute may be called like."""
        if name.lower() in RESERVED_ATTRIBUTES:
            self.diagnostics.add(
                error(
                    "import-unsupported",
                    span,
                    f"no attribute of CEL is called '{name}': celc has such a column itself",
                    "rename the field, here and in the events",
                )
            )

    def kind(self, name: str) -> Kind | None:
        """The type of a field, as far as it is known so far."""
        return self.kinds.get(name, _KNOWN.get(name))

    def expect(self, name: str, kind: Kind, span: Span) -> None:
        """A field is used as a value of a type; two types that do not go together are an error."""
        before = self.kind(name)
        if before is None or before == kind:
            self._set(name, kind, span)
        elif {before, kind} <= _NUMBERS:
            self._set(name, _KNOWN.get(name, "DOUBLE"), span)
        else:
            seen = self._found.get(name)
            self.diagnostics.add(
                error(
                    "import-type",
                    span,
                    f"'{name}' is used as {_words(kind)}, but it is {_words(before)}",
                    "an attribute of CEL has one type: write the constant as a value of that type",
                    related=[Related(seen, "the other use")] if seen else (),
                )
            )

    def _set(self, name: str, kind: Kind, span: Span) -> None:
        self.kinds[name] = kind
        self._found.setdefault(name, span)

    def declared(self, names: dict[str, None]) -> list[tuple[str, str]]:
        """Names with their types, in their order; STRING where nothing says more."""
        return [(name, self.kind(name) or "STRING") for name in names]


def _words(kind: Kind) -> str:
    return {
        "STRING": "a text",
        "LONG": "a whole number",
        "DOUBLE": "a number",
        "BOOLEAN": "true or false",
        "TIMESTAMP": "a time",
    }[kind]
