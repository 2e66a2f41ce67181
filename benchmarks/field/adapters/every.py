"""The adapters, in the order of the page. A new one has a line here."""

from __future__ import annotations

import importlib
from functools import cache

from adapters.adapter import Adapter

_PLACES = {
    "celc": "in_celc.InCelc",
    "duckdb": "in_duckdb.InDuckDB",
    "duckdb_rows": "in_duckdb.InDuckDBRows",
    "polars": "in_polars.InPolars",
    "pandas": "in_pandas.InPandas",
    "spark_sql": "in_spark.InSpark",
    "celc_spark": "in_celc.InCelcOnSpark",
    "flink_cep": "in_flink.InFlinkCep",
    "flink_sql": "in_flink.InFlinkSql",
    "epigrep": "in_epigrep.InEpigrep",
    "pycer": "in_pycer.InPycer",
}
NAMES = tuple(_PLACES)
BESIDE = ("cel_types", "flink_key", "flink_rows", "epigrep_key")
"""Keys of a task that say more of a text, and are none."""


@cache
def adapter(name: str) -> type[Adapter]:
    """The adapter of an engine, by its name. None of them imports its engine before it is
    started."""
    module, kind = _PLACES[name].split(".")
    found: type[Adapter] = getattr(importlib.import_module(f"adapters.{module}"), kind)
    return found


def keys() -> set[str]:
    """The keys of a task that some engine reads."""
    return {*BESIDE, *(language for name in NAMES for language in adapter(name).languages)}
