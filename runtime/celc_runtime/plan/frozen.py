"""Classes of values that never change, made in a fifth of the time.

`@frozen` stands for the standard `@dataclass(frozen=True, slots=True)`, which compiles six
functions for every class. Both packages have hundreds of such classes, and a short command spent
half of its time there. Here all classes share the functions, except for `__init__`. The fields are
those of the standard library, so that `fields`, `replace` and `is_dataclass` know these classes.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")
_ABSENT = object()  # the default of a parameter whose field has a factory


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...


@overload
def frozen(*, eq: bool = True, kw_only: bool = False) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """A class with slots for its fields, which cannot be assigned to. Without `eq`, each object
    equals itself alone."""
    if cls is None:
        return lambda given: _made(given, eq, kw_only)
    return _made(cls, eq, kw_only)


def _made(cls: type[Any], eq: bool, kw_only: bool) -> type[Any]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # the standard library would write a signature
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    own = vars(made)
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init_of(made),
        "__repr__": _repr,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    if eq:
        methods["__eq__"], hash_of = _by_values(made)
        if own.get("__hash__") is None:  # also where the class has its own `__eq__`
            setattr(made, "__hash__", hash_of)  # noqa: B010
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    setattr(made, "__setattr__", _refuse_assignment)  # noqa: B010
    setattr(made, "__delattr__", _refuse_deletion)  # noqa: B010
    return made


def _init_of(cls: type[Any]) -> Callable[..., None]:
    """`__init__` of the fields of a class. It alone is compiled, so that a call costs no more than
    one that is written by hand."""
    known: dict[str, Any] = {"__name__": cls.__module__, "__absent": _ABSENT}
    places: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for one in fields(cls):
        name = one.name
        known[f"__set_{name}"] = getattr(cls, name).__set__
        known[f"__default_{name}"] = one.default
        known[f"__factory_{name}"] = one.default_factory
        if one.init:
            (named if one.kw_only else places).append(_parameter(one))
        if (value := _value(one)) is not None:
            body.append(f" __set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join(["self", *places, *(["*", *named] if named else [])])
    exec("\n".join([f"def __init__({parameters}):", *(body or [" pass"])]), known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in fields(cls) if one.init} | {
        "return": None
    }
    return init


def _parameter(one: Field[Any]) -> str:
    if one.default is not MISSING:
        return f"{one.name}=__default_{one.name}"
    return one.name if one.default_factory is MISSING else f"{one.name}=__absent"


def _value(one: Field[Any]) -> str | None:
    """What a field is set to; None: it is left to `__post_init__`."""
    made = None if one.default_factory is MISSING else f"__factory_{one.name}()"
    if one.init:
        return f"{made} if {one.name} is __absent else {one.name}" if made else one.name
    return made if one.default is MISSING else f"__default_{one.name}"


def _by_values(cls: type[Any]) -> tuple[Callable[..., Any], Callable[..., int]]:
    """`__eq__` and `__hash__` of a class; the hash is that of the standard library."""
    compared = tuple(one.name for one in fields(cls) if one.compare)
    hashed = tuple(
        one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)
    )
    values_of, hashed_of = _getter(compared), _getter(hashed)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values_of(self) == values_of(other)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed_of(self))

    return __eq__, __hash__


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of fields of an object, always as a tuple."""
    match names:
        case ():
            return lambda given: ()
        case (name,):
            value_of = attrgetter(name)
            return lambda given: (value_of(given),)
        case _:
            return attrgetter(*names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
