"""Which modules a runtime runs, and when the number of their format must grow.

`tests/fixtures/module_format.txt` is a record of all that a generated module can import: functions
with their arguments, classes with their fields. Its head has the format, and the version of celc
that has it first. While that version is made, the record may be written anew (--update-golden).
After that a record that differs needs a greater `FORMAT`; and where something is no longer there,
or differs, and not only more is there, a greater `OLDEST`. A change of meaning shows in no record:
whoever makes one raises the number.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import celc_runtime.plan
import pytest
from celc_runtime import module_format
from celc_runtime.jit.shipping import module_of
from celc_runtime.module_format import FORMAT, OLDEST, FormatError
from places import TESTS

import celc
from celc.codegen.text.imports import MODULE_OF
from celc.driver.standalone import standalone

_RECORD = TESTS / "fixtures" / "module_format.txt"
_HEAD = re.compile(r"format (\d+), oldest (\d+), first in celc (\S+)")


def _all() -> dict[str, Any]:
    """What modules import, by its place: the names of code, and the classes of data."""
    found = {
        f"{module}.{name}": getattr(import_module(module), name)
        for name, module in MODULE_OF.items()
    }
    path = celc_runtime.plan.__path__
    for one in pkgutil.walk_packages(path, "celc_runtime.plan."):
        module = import_module(one.name)
        for name, value in vars(module).items():
            if dataclasses.is_dataclass(value) and value.__module__ == module.__name__:
                found[f"{module.__name__}.{name}"] = value
    return found


def _described(value: Any) -> str:
    if dataclasses.is_dataclass(value) and isinstance(value, type):
        fields = (
            f"{field.name}: {_type_text(field.type)}{'' if _is_needed(field) else ' = …'}"
            for field in dataclasses.fields(value)
            if field.init
        )
        return f"({', '.join(fields)})"
    if callable(value) and not isinstance(value, type):
        function = inspect.unwrap(getattr(value, "py_func", value))
        return str(inspect.signature(function))
    return f"({type(value).__name__})" if not isinstance(value, type) else "(class)"


def _type_text(type: Any) -> str:
    """The same text, whether or not a module has its annotations as texts."""
    text = type.__name__ if inspect.isclass(type) else str(type)
    return re.sub(r"\b(?:celc_runtime|typing|collections)[\w.]*\.", "", text)


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    absent = dataclasses.MISSING
    return field.default is absent and field.default_factory is absent


def _lines() -> Iterator[str]:
    for place, value in sorted(_all().items()):
        yield f"{place}{_described(value)}"


def test_the_golden_record_of_the_format_is_up_to_date(update: bool) -> None:
    text = "".join(f"{line}\n" for line in _lines())
    head, _, recorded = _RECORD.read_text("utf-8").partition("\n")
    found = _HEAD.fullmatch(head)
    assert found is not None
    number, oldest, version = int(found[1]), int(found[2]), found[3]
    assert (oldest, number) <= (OLDEST, FORMAT), "a number of a format never gets smaller"
    if (text, FORMAT, OLDEST) == (recorded, number, oldest):
        return
    may_be_written = version == celc.__version__ or number < FORMAT
    assert may_be_written, (
        f"modules import other things than in format {number}, which celc {version} has: raise "
        "FORMAT in celc_runtime/module_format.py, and OLDEST if modules of that format do not run"
    )
    # Where more is there, older modules run; where something is gone or differs, they may not.
    gone = set(recorded.splitlines()) - set(text.splitlines())
    assert version == celc.__version__ or not gone or oldest < OLDEST, f"raise OLDEST: {gone}"
    assert update, f"pytest --update-golden writes {_RECORD.name} anew"
    head = f"format {FORMAT}, oldest {OLDEST}, first in celc {celc.__version__}"
    _RECORD.write_text(f"{head}\n{text}", encoding="utf-8")


# --- what is refused ------------------------------------------------------------------------------

_QUERY = "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } } SELECT * FROM S WHERE A ; B"
_ROWS = (
    "CREATE TABLE t (id INT, v INT); SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id "
    "MEASURES COUNT(*) AS n PATTERN (S D) DEFINE D AS v < PREV(v))"
)
_KINDS = {"cel": _QUERY, "match_recognize": _ROWS}


def _module(dialect: str, number: int) -> str:
    """A module that another version wrote, whose names this runtime does not have."""
    text = celc.compile(_KINDS[dialect], dialect=dialect).source
    assert text.count(f"check_format({FORMAT}, ") == 1
    text = text.replace(f"check_format({FORMAT}, ", f"check_format({number}, ")
    text = text.replace('CELC_VERSION = "', 'CELC_VERSION = "7.')
    return text.replace("from celc_runtime.jit.kernels import njit", "from celc_runtime.x import y")


@pytest.mark.parametrize("dialect", _KINDS)
@pytest.mark.parametrize("number", [FORMAT + 1, OLDEST - 1])
def test_a_module_of_another_format_is_refused_before_it_imports_anything(
    dialect: str, number: int
) -> None:
    with pytest.raises(FormatError) as refused:
        module_of(_module(dialect, number), "fire_udf")
    told = str(refused.value)
    version = celc.__version__
    assert re.match(
        rf"the module fire_udf_\w+ was written by celc 7\.{version} in format {number}, and the "
        rf"runtime here, celc-runtime {version}, runs format {FORMAT}: ",
        told,
    )
    if number > FORMAT:
        assert f"pip install 'celc-runtime>=7.{version}'" in told
    else:
        assert f"compile the query anew with celc {version}, by the command at the head" in told


def test_formats_of_a_range_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_format, "FORMAT", 5)
    monkeypatch.setattr(module_format, "OLDEST", 3)
    for number in (3, 4, 5):
        module_format.check_format(number, "0.9.0", "fire_udf")
    for number in (2, 6):
        with pytest.raises(FormatError, match="runs formats 3 to 5: "):
            module_format.check_format(number, "0.9.0", "fire_udf")


def test_a_standalone_module_asks_the_runtime_that_it_brings() -> None:
    text = standalone(celc.compile(_QUERY).source)
    assert re.search(r"^from celc_runtime_\w+\.module_format import check_format$", text, re.M)
    assert "from celc_runtime.module_format" not in text.partition("# The query.")[2]
    assert isinstance(module_of(text), ModuleType)
