"""RLIKE is RE2's, and docs/rlike.md says where Java, and so Spark, decides otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.arrow.text_conditions import truth_of_values
from celc_runtime.plan.conditions import TextCondition
from engines import interpreted, only_query
from places import ROOT
from spark_conditions import cel_text, sql_text

import celc

DOCUMENT = (ROOT / "docs" / "rlike.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Case:
    """An expression, a text, and whether the one is found in the other: by Spark and by celc."""

    expression: str
    text: str
    spark: bool
    celc: bool


DIFFERENT = [
    Case("a$", "a\n", True, False),
    Case("a$", "a\u2028", True, False),
    Case("^.$", "\r", False, True),
    Case("^.$", "\x85", False, True),
    Case("(?m)^b", "a\rb", True, False),
    Case("(?m)a$", "a\rb", True, False),
    Case(r"(?m)\n^", "a\n", False, True),
    Case("(?m)^$", "", False, True),
    Case(r"\s", "\x0b", True, False),
    Case(r"[^\s]", "\x0b", False, True),
    Case(r"\v", "\n", True, False),
    Case(r"a\b", "aé", False, True),
    Case(r"\B", "é", False, True),
    Case("(?i)É", "é", False, True),
    Case("(?i)k", "\u212a", False, True),
    Case("[a-z&&[^b]]", "c", True, False),
    Case("[a[bc]]", "b", True, False),
    Case("[[:alpha:]]", "x", False, True),
    Case(r"(?U)\w", "é", True, False),
    Case(r"\0101", "A", True, False),
    Case(r"\101", "A", False, True),
]
WORDS_OF_ALL_SCRIPTS = (r"a\b", r"\B")
"""What Java decides as RE2 does since version 19."""

# What the document offers instead, and expressions that mean the same in both anyway.
SAME = [
    *(Case(r"a\z", text, found, found) for text, found in (("a", True), ("a\n", False))),
    *(Case(r"a\n?\z", text, found, found) for text, found in (("a\n", True), ("a\nb", False))),
    *(Case("^[^\n\r]$", text, found, found) for text, found in (("\r", False), ("\x85", True))),
    *(Case("^(?s:.)$", text, True, True) for text in ("\n", "\r", "\u2028", "é", "😀")),
    *(Case(r"[\s\x0b]", text, True, True) for text in ("\x0b", " ", "\f")),
    *(
        Case(r"[\n\x0b\f\r\x{85}\x{2028}\x{2029}]", text, found, found)
        for text, found in (("\n", True), ("\u2029", True), (" ", False))
    ),
    Case("[Éé]", "é", True, True),
    Case("[Kk]", "\u212a", False, False),
    Case("[ac-z]", "b", False, False),
    Case("[abc]", "b", True, True),
    Case("[A-Za-z]", "x", True, True),
    Case(r"[\pL\p{Nd}_]", "é", True, True),
    Case(r"\x41", "A", True, True),
    Case(r"\d", "\u0663", False, False),
    Case(r"\p{Nd}", "\u0663", True, True),
    Case(r"\w", "é", False, False),
    Case(r"\W", "é", True, True),
    Case(r"\pL", "é", True, True),
    Case(r"\S", "\u00a0", True, True),
    Case("(?i)A", "a", True, True),
    Case(r"\Qa.b\E", "a.b", True, True),
    Case(r"\Qa.b\E", "axb", False, False),
    Case("^.$", "😀", True, True),
    Case("^.$", "e\u0301", False, False),
    Case("^[😀é]$", "😀", True, True),
    Case("[^a]", "\n", True, True),
    Case(r"\x{1F600}", "😀", True, True),
    Case("(?<n>a)", "a", True, True),
    Case("", "", True, True),
    Case("$", "a\nb", True, True),
    Case(r"\Aa", "ba", False, False),
    Case("^a", "b\na", False, False),
    Case("(?m)^a", "b\na", True, True),
    Case("a{1000}", "a" * 1000, True, True),
    Case("(|a)+b", "aab", True, True),
    Case("a*?b", "aab", True, True),
    Case("[]a]", "]", True, True),
    Case(r"[a\-z]", "-", True, True),
    Case(r"[\w-]", "-", True, True),
    Case(r"a\{", "a{", True, True),
    Case(r"[\t\p{Zs}]", "\u00a0", True, True),
    Case(r"^\PM\pM*$", "e\u0301", True, True),
    Case(r"\p{Ll}", "a", True, True),
    Case(r"[\x{370}-\x{3ff}]", "α", True, True),
    Case(r"a(?:[^c]|\z)", "ab", True, True),
    Case(r"a(?:[^c]|\z)", "ac", False, False),
    Case(r"(?:\A|[^c])b", "b", True, True),
    Case(r"(?:\A|[^c])b", "cb", False, False),
]

REFUSED_BY_CELC = {
    "a(?=b)": "ab",
    "a(?!c)": "ab",
    "(?<=a)b": "ab",
    "(?<!c)b": "ab",
    r"(a)\1": "aa",
    r"(?<n>a)\k<n>": "aa",
    "a++b": "aab",
    "(?>a+)b": "aab",
    r"a\Z": "a\n",
    r"\R": "\n",
    r"\h": "\u00a0",
    r"^\X$": "e\u0301",
    r"\Ga": "a",
    r"\u0041": "A",
    r"\cA": "\x01",
    r"\e": "\x1b",
    r"\N{LATIN SMALL LETTER A}": "a",
    r"\é": "é",
    r"\p{IsGreek}": "α",
    r"\p{InGreek}": "α",
    r"\p{Alpha}": "a",
    r"\p{javaLowerCase}": "a",
    "(?x)a b": "ab",
    "(?u)a": "a",
    "(?d)a": "a",
    "a{1001}": "a" * 1001,
}
REFUSED_BY_SPARK = {
    "(?P<n>a)": "a",
    r"\p{Greek}": "α",
    r"\p{Han}": "日",
    r"\C": "é",
    "a{": "a{",
    "{": "{",
}


def found_by_celc(expression: str, text: str) -> bool:
    """Whether a query with the condition matches an event with the text."""
    with interpreted():
        query = only_query(
            celc.compile(
                "CREATE STREAM S { EVENT E { s: STRING } }\n"
                f"SELECT NONE WHERE E AS x FILTER x.s RLIKE {cel_text(expression)}"
            )
        )
    return len(query.match_table(pa.table({"s": [text]}))) == 1


def found_by_spark(spark: Any, cases: list[tuple[str, str]]) -> list[bool]:
    """Whether Spark finds each expression in its text."""
    (row,) = (
        spark.range(1)
        .selectExpr(
            *(f"{sql_text(text)} RLIKE {sql_text(e)} AS c{k}" for k, (e, text) in enumerate(cases))
        )
        .collect()
    )
    return list(row)


def java_version(spark: Any) -> int:
    """The version of the Java that runs Spark."""
    call = "java_method('java.lang.System', 'getProperty', 'java.specification.version')"
    return int(spark.sql(f"SELECT {call}").collect()[0][0])


@pytest.mark.parametrize(
    "case", [*DIFFERENT, *SAME], ids=lambda c: f"{c.expression}-{c.text[:9]!r}"
)
def test_celc(case: Case) -> None:
    assert found_by_celc(case.expression, case.text) == case.celc


def test_spark(spark: Any) -> None:
    cases = [*DIFFERENT, *SAME]
    found = found_by_spark(spark, [(case.expression, case.text) for case in cases])
    new = java_version(spark) >= 19
    for case, answer in zip(cases, found, strict=True):
        same = new and case.expression in WORDS_OF_ALL_SCRIPTS
        assert answer == (case.celc if same else case.spark), case


def test_different_cases_differ() -> None:
    assert all(case.spark != case.celc for case in DIFFERENT)
    assert all(case.spark == case.celc for case in SAME)


@pytest.mark.parametrize("expression", REFUSED_BY_CELC)
def test_refused_by_celc(expression: str) -> None:
    with pytest.raises(celc.CelError) as raised:
        found_by_celc(expression, "")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "invalid-regex"
    assert "this regular expression is refused: " in diagnostic.message


def test_not_refused_by_spark(spark: Any) -> None:
    assert all(found_by_spark(spark, list(REFUSED_BY_CELC.items())))


@pytest.mark.parametrize("expression", REFUSED_BY_SPARK)
def test_refused_by_spark(expression: str, spark: Any) -> None:
    text = REFUSED_BY_SPARK[expression]
    assert found_by_celc(expression, text)
    with pytest.raises(Exception, match=r"INVALID_PARAMETER_VALUE\.PATTERN"):
        found_by_spark(spark, [(expression, text)])


def test_the_document_lists_what_is_tested_here() -> None:
    tables = re.split(r"^## .*$", DOCUMENT, flags=re.MULTILINE)[1:]
    listed = [re.findall(r"^\| `(.+?)` \|", table, flags=re.MULTILINE) for table in tables]
    assert listed[0] == [case.expression for case in DIFFERENT]
    assert listed[1] == list(REFUSED_BY_CELC)
    assert listed[2] == list(REFUSED_BY_SPARK)
    verdicts = re.findall(
        r"^\| `.+?` \| .+? \| (TRUE|FALSE) \| (TRUE|FALSE) \|", tables[0], re.MULTILINE
    )
    assert verdicts == [(str(c.spark).upper(), str(c.celc).upper()) for c in DIFFERENT]


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "^(a*)*$", "^(a|aa)+$", "^(a|a?)+$", "(.*a){20}$"]
)
def test_long_texts_take_no_time(expression: str) -> None:
    """In an engine that goes back, each letter more multiplies the work. Texts of a million letters
    would never be done."""
    condition = TextCondition("rlike", "s", (expression,))
    texts = [("a" * length) + last for length in (100, 10_000, 1_000_000) for last in "ba"]
    expected = [last == "a" for _ in range(3) for last in "ba"]
    assert truth_of_values(condition, pa.array(texts)).tolist() == expected
