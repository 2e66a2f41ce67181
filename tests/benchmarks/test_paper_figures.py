"""The papers' figures: sentences hold on short streams, and the page shows the newest record."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from engines import interpreted
from places import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from papers import page, run
from papers.figures import Made, Sentence, bends_up, exponents, grows, slope

_SCRIPTS = run.scripts()


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _SCRIPTS)
def test_sentences_hold_on_short_streams(name: str) -> None:
    with interpreted():
        figure = run.made(name, _SCRIPTS[name], small=True)
    assert figure["sentences"]
    assert not [one for one in figure["sentences"] if not one["holds"]]
    assert not [one for one in figure["sentences"] if one["timed"]]


def test_a_sentence_that_fails_makes_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "sase/figure_3"
    failing = Made((), (Sentence("all is well", False, "not so"),))
    monkeypatch.setattr(_SCRIPTS[name], "make", lambda small: failing)
    assert run.main(["--small", "--only", name]) == 1
    assert "FAILS  all is well: not so" in capsys.readouterr().out


def test_what_is_no_script_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["--small", "--only", "cel/figure_99"])
    assert "no script is called cel/figure_99; there are cel/figure_4," in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["--small", "--record"])


def test_growth_is_told_by_its_exponent() -> None:
    cubes = [(n, 5.0 * n**3) for n in (2, 4, 8)]
    assert slope(cubes) == pytest.approx(3)
    assert exponents(cubes) == pytest.approx([3, 3])
    assert grows("cubes", cubes, 3).holds
    assert not grows("cubes", cubes, 2.7).holds
    assert not bends_up("cubes", [(n, n**3 + 7 / n) for n in (1, 2, 4)], 4).holds
    assert bends_up("powers of two", [(n, 2.0**n) for n in (2, 4, 8)], 3).holds


def test_every_figure_is_recorded_with_all_that_the_paper_prints() -> None:
    figures = {figure["name"]: figure for figure in page.newest()["figures"]}
    assert list(figures) == list(_SCRIPTS)
    for name, figure in figures.items():
        folder, _, script = name.partition("/")
        printed = [what for what, _ in page.papers()[folder][script]["printed"]]
        assert sorted(figure["ours"]) == sorted(printed), name
        assert all(one["holds"] for one in figure["sentences"]), name


def test_the_page_shows_the_newest_record() -> None:
    assert page.PAGE.read_text("utf-8") == page.text(page.newest()), "make papers ARGS=--page"


@pytest.mark.long
def test_pictures_are_those_of_the_record(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page.pictures(page.newest(), tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in page.IMAGES.iterdir()}
    shown = page.PAGE.read_text("utf-8")
    assert all(f"images/figures/{name}" in shown for name in drawn)
