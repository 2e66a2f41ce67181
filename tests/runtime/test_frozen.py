"""`@frozen` makes the classes that the standard `dataclass` makes, in less time."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest
from celc_runtime.plan.frozen import frozen
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT


@frozen
class Point:
    """Two numbers."""

    x: int
    y: int = 0
    names: ClassVar[str] = "xy"


@frozen
class Place(Point):
    label: str = field(default="", compare=False)
    tags: tuple[str, ...] = field(default=(), kw_only=True)


@frozen(kw_only=True)
class Named:
    name: str
    parts: list[int] = field(default_factory=list, repr=False)


@frozen(eq=False)
class Each:
    value: int


@frozen
class Counted:
    text: str
    _length: int = field(init=False, repr=False, compare=False)
    unit: str = field(init=False, default="letters")

    def __post_init__(self) -> None:
        object.__setattr__(self, "_length", len(self.text))

    def length(self) -> int:
        return self._length


@frozen
class Own:
    """A class that says itself how it is shown, compared and hashed."""

    value: int

    def __repr__(self) -> str:
        return "own"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 7


@frozen
class OwnEquality:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnEquality)


@frozen
class Tree:
    parts: list[Tree]


_MADE: list[Any] = [
    Point(1),
    Place(1, 2, "here", tags=("a",)),
    Named(name="n", parts=[1]),
    Counted("four"),
    Own(3),
]


@pytest.mark.parametrize("one", _MADE, ids=repr)
def test_values_are_copied_replaced_and_pickled(one: Any) -> None:
    for again in (
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one)),
        replace(one),
    ):
        assert type(again) is type(one)
        assert again is not one
        assert [getattr(again, f.name) for f in fields(one)] == [
            getattr(one, f.name) for f in fields(one)
        ]
        assert again == one


@pytest.mark.parametrize("one", [*_MADE, Each(1)], ids=repr)
def test_nothing_is_assigned_or_deleted(one: Any) -> None:
    for name in (fields(one)[0].name, "other"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one, name, 1)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(one, name)
    assert not hasattr(one, "__dict__")


def test_fields_and_patterns() -> None:
    assert is_dataclass(Point)
    assert Place.__match_args__ == ("x", "y", "label")
    match Place(1, 2, "here"):
        case Place(x, y, label):
            assert (x, y, label) == (1, 2, "here")
    assert replace(Counted("a"), text="bcd").length() == 3
    with pytest.raises(ValueError, match="init=False"):
        replace(Counted("a"), unit="words")
    assert Named(name="a").parts is not Named(name="a").parts
    assert Point.names == "xy"
    assert Point.__doc__ == "Two numbers."


def test_equality_and_hash() -> None:
    assert Point(1) == Point(1, 0)
    assert hash(Point(1)) == hash((1, 0))
    assert Point(1) != Place(1)
    assert Place(1, 0, "a") == Place(1, 0, "b")
    assert Each(1) != Each(1)
    assert len({Each(1), Each(1)}) == 2
    assert Own(1) == Own(2)
    assert hash(Own(1)) == 7
    assert OwnEquality(1) == OwnEquality(2)
    assert hash(OwnEquality(3)) == hash((3,))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Named(name="a"))


def test_an_object_that_holds_itself_is_shown() -> None:
    tree = Tree([])
    tree.parts.append(tree)
    assert repr(tree) == "Tree(parts=[...])"


def test_a_wrong_call_names_the_class_and_the_field() -> None:
    new: Any = Point
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required .* 'x'"):
        new()
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) got an unexpected .* 'z'"):
        new(1, z=2)


_VALUES = st.one_of(st.integers(-2, 2), st.sampled_from(["", "a", None, 1.5, float("nan"), (1, 2)]))


@st.composite
def _shapes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The annotations, the defaults and specifiers of a class; and whether `kw_only` is given."""
    kw_only, defaults = draw(st.booleans()), False
    names: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for number in range(draw(st.integers(0, 4))):
        name = f"f{number}"
        names[name] = "object"
        options: dict[str, Any] = {}
        if draw(st.booleans()):
            options = {
                "repr": draw(st.booleans()),
                "compare": draw(st.booleans()),
                "hash": draw(st.sampled_from([None, True, False])),
                "kw_only": draw(st.booleans()),
            }
        named = options.get("kw_only", kw_only)
        if draw(st.booleans()) or (defaults and not named):
            defaults = defaults or not named
            options[draw(st.sampled_from(["default", "default_factory"]))] = draw(
                st.sampled_from([int, str, tuple])
            )
            options["init"] = draw(st.booleans())
        if options:
            values[name] = field(**options)
    return names, values, kw_only


def _class(shape: tuple[dict[str, Any], dict[str, Any], bool], decorator: Any, base: Any) -> Any:
    names, values, _ = shape
    space = {"__annotations__": names, "__module__": __name__, "__doc__": "A class."}
    copies = {name: copy.copy(value) for name, value in values.items()}
    return decorator(type("Shape", (base,), space | copies))


def _decorators(kw_only: bool, eq: bool) -> tuple[Any, Any]:
    return frozen(kw_only=kw_only, eq=eq), dataclass(
        frozen=True, slots=True, kw_only=kw_only, eq=eq
    )


def _calls(cls: Any, values: list[Any]) -> Iterator[Any]:
    """Objects from several calls, or what they raise."""
    names = [one.name for one in fields(cls)]
    for count, named in itertools.product(range(len(names) + 1), repeat=2):
        given = dict(list(zip(names, values, strict=False))[count : count + named])
        try:
            yield cls(*values[:count], **given)
        except TypeError as error:
            yield error


@given(_shapes(), st.lists(_VALUES, min_size=4, max_size=4), st.booleans(), st.booleans())
def test_shapes_are_those_of_the_standard_library(
    shape: tuple[dict[str, Any], dict[str, Any], bool], values: list[Any], eq: bool, derived: bool
) -> None:
    ours, theirs = (
        _class(shape, decorator, _class(_BASE, decorator, object) if derived else object)
        for decorator in _decorators(shape[2], eq)
    )
    assert [(f.name, f.init, f.kw_only, f.type) for f in fields(ours)] == [
        (f.name, f.init, f.kw_only, f.type) for f in fields(theirs)
    ]
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert ours.__doc__ == theirs.__doc__
    assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]
    made, wanted = [*_calls(ours, values)], [*_calls(theirs, values)]
    for (one, same), (other, as_other) in itertools.pairwise(zip(made, wanted, strict=True)):
        assert type(one).__name__ == type(same).__name__
        assert repr(one) == repr(same)
        assert (one == other) == (same == as_other)
        if isinstance(one, ours):
            assert dataclasses.asdict(one).keys() == dataclasses.asdict(same).keys()
            assert one.__getstate__() == same.__getstate__()
            assert not eq or hash(one) == hash(same)


_BASE: tuple[dict[str, Any], dict[str, Any], bool] = ({"base": "object"}, {}, True)


def test_both_packages_make_their_classes_so() -> None:
    slow = re.compile(r"^@dataclass\(frozen=True, slots=True(?!, order)", re.MULTILINE)
    files = [path for folder in ("celc", "runtime") for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in files if slow.search(path.read_text("utf-8"))] == []
