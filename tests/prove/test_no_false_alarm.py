"""On the compiler as it is, no step of a proof is wrong for any query of the cases."""

from __future__ import annotations

from collections import Counter

import pytest
from cases_io import case_stems, load_cases

from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.driver.proving import proofs
from celc.options import Options


@pytest.mark.long
@pytest.mark.parametrize("stem", case_stems())
def test_no_step_is_wrong(stem: str) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for query, order_by, ties in dict.fromkeys(
        (case.query, case.order_by, case.ties) for case in load_cases(stem) if not case.functions
    ):
        compilation = compile_source(Source("q.cel", query), Options(order_by, ties=ties))  # type: ignore[arg-type]
        text = "".join(compilation.module_parts("celc compile q.cel"))
        for _, verdicts in proofs(compilation, text):
            for one in verdicts:
                counts[f"{one.step}: {one.kind}"] += 1
                if one.kind == "wrong":
                    wrong.append(f"{query}: {one.step}: {one.counterexample}")
    print(stem, counts)
    assert wrong == []
