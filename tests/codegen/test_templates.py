"""Each template asks for the fields of its dataclass, for all of them, and decides nothing else."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from jinja2 import nodes

import celc.codegen.module
import celc.row_pattern.module  # with it all that fill templates
from celc.codegen.text.templates import TemplateView, environment, template_folder

assert celc.codegen.module
assert celc.row_pattern.module

_LAYOUT = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Filter)
_VALUES = (nodes.Name, nodes.Getattr, nodes.Const)


def _views(view: type[TemplateView] = TemplateView) -> Iterator[type[TemplateView]]:
    for derived in view.__subclasses__():
        # A dataclass with slots is made twice; the first of the two is nobody's.
        if derived is getattr(__import__(derived.__module__, fromlist=["_"]), derived.__name__):
            yield derived
        yield from _views(derived)


VIEWS = {view.template: view for view in _views()}


def _parse(name: str) -> nodes.Template:
    text = (template_folder() / f"{name}.py.jinja").read_text("utf-8")
    return environment().parse(text)


def _part(annotation: object) -> object:
    """What `X | None` and sequences of X are about."""
    if annotation is range:
        return int
    arguments = [a for a in typing.get_args(annotation) if a not in (type(None), Ellipsis)]
    return arguments[0] if arguments else annotation


class _Uses:
    """Which fields of which dataclass a template asks for; fails for one that is not there."""

    def __init__(self) -> None:
        self.fields: set[tuple[type, str]] = set()

    def walk(self, node: nodes.Node, scope: dict[str, object]) -> None:
        match node:
            case nodes.For(target=nodes.Name(name=name)):
                of = self.type_of(node.iter, scope)
                inside = {**scope, name: _part(of)}
                for child in node.body:
                    self.walk(child, inside)
            case nodes.Name() | nodes.Getattr():
                self.type_of(node, scope)
            case _:
                for child in node.iter_child_nodes():
                    self.walk(child, scope)

    def type_of(self, node: nodes.Node, scope: dict[str, object]) -> object:
        match node:
            case nodes.Name(name=name):
                if name in scope:
                    return scope[name]
                return self._field(scope["view"], name)
            case nodes.Getattr(node=owner, attr=name):
                return self._field(_optional(self.type_of(owner, scope)), name)
            case _:
                raise AssertionError(f"line {node.lineno}: {type(node).__name__} is no value")

    def _field(self, owner: object, name: str) -> object:
        assert isinstance(owner, type), f"{owner} has no {name}"
        hints = typing.get_type_hints(owner) if is_dataclass(owner) else {}
        assert name in hints, f"{owner.__name__} has no field {name}"
        self.fields.add((owner, name))
        return hints[name]


def _optional(annotation: object) -> object:
    return annotation if isinstance(annotation, type) else _part(annotation)


def _classes(view: type) -> Iterator[type]:
    """A dataclass, and those of the parts that its fields hold."""
    yield view
    hints = typing.get_type_hints(view)
    for field in fields(view):
        part = _part(hints[field.name])
        if is_dataclass(part):
            assert isinstance(part, type)
            yield from _classes(part)


def test_each_template_has_a_dataclass() -> None:
    assert sorted(VIEWS) == sorted(
        path.name.removesuffix(".py.jinja") for path in template_folder().glob("*.py.jinja")
    )


@pytest.mark.parametrize("name", VIEWS)
def test_templates_decide_nothing(name: str) -> None:
    for node in _parse(name).find_all(nodes.Node):
        where = f"line {node.lineno}: {type(node).__name__}"
        assert isinstance(node, _LAYOUT + _VALUES), where
        if isinstance(node, nodes.For):
            assert not node.test, where
            assert not node.else_, where
        if isinstance(node, nodes.If):
            assert isinstance(node.test, nodes.Name | nodes.Getattr), where
            assert not node.elif_, where
        if isinstance(node, nodes.Filter):
            assert node.name == "join", where


@pytest.mark.parametrize("name", VIEWS)
def test_variables_of_a_template_are_the_fields_of_its_dataclass(name: str) -> None:
    uses = _Uses()
    uses.walk(_parse(name), {"view": VIEWS[name]})
    there = {(owner, field.name) for owner in _classes(VIEWS[name]) for field in fields(owner)}
    # Some parts stand in several templates, each of which shows some of them.
    assert {pair for pair in there if pair[0] is VIEWS[name]} <= uses.fields
    assert uses.fields <= there


def test_every_field_of_a_part_is_asked_for() -> None:
    uses = _Uses()
    for name, view in VIEWS.items():
        uses.walk(_parse(name), {"view": view})
    classes = {owner for view in VIEWS.values() for owner in _classes(view)}
    there = {(owner, field.name) for owner in classes for field in fields(owner)}
    assert there == uses.fields


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ number }}{{ nobody }}", "has no field nobody"),
        ("{% for pile in piles %}{{ pile.nobody }}{% endfor %}", "has no field nobody"),
        ("{% for pile in heads %}{{ pile.number }}{% endfor %}", "has no field number"),
    ],
)
def test_a_name_that_is_not_there_is_found(text: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        _Uses().walk(environment().parse(text), {"view": VIEWS["straight_line_update"]})
