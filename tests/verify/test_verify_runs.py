"""When the verifier runs, and how it reports a broken representation."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from celc_runtime.plan.plan import Source
from verified import PLAIN, source_of

from celc import verify
from celc.codegen import query
from celc.diagnostics.errors import CelError
from celc.driver import pipeline
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.verify import Violation


def test_it_is_on_in_all_tests() -> None:
    assert pipeline.VERIFYING


def test_the_error_says_which_pass_what_and_where() -> None:
    found = Violation("symbol 0 is in no match", "it has 2 steps")
    with pytest.raises(verify.VerificationError) as caught:
        verify.verify("tabulate", "tables", [found])
    assert str(caught.value) == (
        "after the pass 'tabulate', tables: symbol 0 is in no match, but it has 2 steps"
    )
    assert not isinstance(caught.value, CelError)
    verify.verify("tabulate", "tables", [])


def test_a_pass_that_goes_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pipeline.minimise
    monkeypatch.setattr(
        pipeline, "minimise", lambda full: replace(made(full), class_of=made(full).class_of[1:])
    )
    with pytest.raises(verify.VerificationError, match="'minimise'"):
        compile_source(source_of(PLAIN), Options())


def test_a_plan_that_goes_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = query.plan_of
    monkeypatch.setattr(
        query, "plan_of", lambda program, asked: replace(made(program, asked), source=Source())
    )
    compilation = compile_source(source_of(PLAIN), Options())
    with pytest.raises(verify.VerificationError, match="'lower', plan: every column"):
        compilation.module_parts("test")


@pytest.mark.parametrize(("value", "on"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_it_is_off_by_default_and_not_imported(value: str | None, on: bool) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "CELC_VERIFY"}
    if value is not None:
        environment["CELC_VERIFY"] = value
    script = (
        "import sys, celc\n"
        f"assert not celc.check({source_of(PLAIN).text!r}, name='q')\n"
        "print('celc.verify' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [str(on)]
