"""`celc test --spark`: the cases of a test file in a session of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from celc.interfaces.cli.testing.files import read_tests
from celc.interfaces.cli.testing.on_spark import run_on
from celc.interfaces.cli.testing.running import Runner

_QUERY = """CREATE STREAM S { EVENT A { k: INT, v: DOUBLE, ts: TIMESTAMP } }
PARAMETERS rule { low: DOUBLE }
SELECT x[v], y FROM S FOR EACH rule WHERE (A AS x ; A AS y) FILTER x.v > rule.low AND y.v < x.v
PARTITION BY k WITHIN 5 MINUTES [ts]
"""
_TESTS = """[[case]]
given = '''
k, v,   ts
1, 2.5, 2026-07-01 12:00:00
2, 9.0, 2026-07-01 12:00:00
1, 2.0, 2026-07-01 12:05:00
'''
parameters.rule = [{ low = 1 }, { low = 2.25 }]
expected = [
  { k = 1, rule = { low = 1.0 }, x = { pos = 0, v = 2.5 }, y = 1 },
  { rule = { low = 2.25 }, end_time = 2026-07-01 12:05:00 },
]
"""


@pytest.mark.long
def test_cases_have_the_same_answers_on_spark(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "q.cel").write_text(_QUERY)
    (tmp_path / "q.test.toml").write_text(_TESTS)
    (outcome,) = Runner(read_tests(tmp_path / "q.test.toml"), run=run_on(spark)).all()
    assert outcome.passed, (outcome.missing, outcome.extra)
