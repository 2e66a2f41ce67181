"""Statements over table functions, as `celc compile --to spark-functions` makes them."""

from __future__ import annotations

from typing import Any

from celc_runtime.jit.shipping import module_of

from celc.core.limits import DEFAULT_MAX_WORK
from celc.diagnostics.source import Source
from celc.statements.functions import Functions, functions_of

DECLARED = """\
CREATE TABLE ticker (
  symbol STRING, ts TIMESTAMP, price DECIMAL(10, 2), volume BIGINT, tags ARRAY<STRING>
);
CREATE TABLE clicks (
  user_id BIGINT, ts TIMESTAMP, page STRING, device STRUCT<os: STRING, version: INT>
);
CREATE TABLE logins (host STRING, who STRING, ok BOOLEAN, at TIMESTAMP, country STRING);
"""
"""The tables of the statements."""


def functions(text: str, name: str = "q.sql", undeclared: Any = None) -> Functions:
    """The functions of a text, without its declarations."""
    given = None if undeclared is None else lambda: undeclared
    return functions_of(Source(name, text), f"celc compile {name}", DEFAULT_MAX_WORK, given)


def registered(spark: Any, made: Functions) -> None:
    """Register the functions in a session."""
    module_of("".join(made.module)).register_all(spark)
