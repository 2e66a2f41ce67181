"""The documents' Python without `>>>` runs: its names are those that the page speaks of.

A block that leaves a DataFrame called `matches` has found the three matches of the README's farm.
The paths of files are those of a folder of the test, because Spark's are not relative to this
process's folder.
"""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import long_over_connect
from engines import interpreted
from places import ROOT
from stream_routes import SETTINGS, settings
from test_docs import DOCUMENTS, Block, blocks_in

import celc
from celc.interfaces.cli import main

_PAGES = {
    str(path.relative_to(ROOT)): list(blocks_in(path.read_text("utf-8"))) for path in DOCUMENTS
}

_PARSED_ONLY = {
    'format("kafka")': "needs a broker",
    "rules_udf.match_all_stream": "tests of streams of many queries run such streams",
    "fire_udf.match_table(events)        #": "other pages run these two lines, with events",
    "made with --standalone": "tests of --standalone run such modules, without the runtime",
    "register_pickle_by_value(celc_runtime)": "would change how all later tests send celc",
}
"""What a block contains that is not run, and why."""


def _scripts(page: str) -> list[Block]:
    """The blocks of a page that are run here."""
    plain = [
        b for b in _PAGES[page] if b.language == "python" and b.comment in ("", "file: job.py")
    ]
    return [block for block in plain if not any(part in block.text for part in _PARSED_ONLY)]


_WITH_SCRIPTS = [page for page in _PAGES if _scripts(page)]
"""In the long run the README's two scripts also run as printed, in sessions of their own
(`test_readme_on_spark.py`)."""


@long_over_connect
@pytest.mark.parametrize("page", _WITH_SCRIPTS)
def test_scripts(
    page: str,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with interpreted(), settings(spark, SETTINGS), _modules(tmp_path):
        names = _names(page, spark, tmp_path)
        try:
            for block in _scripts(page):
                place = f"{page}, line {block.line}"
                names.pop("matches", None)
                capsys.readouterr()
                script = Path("job.py")
                script.write_text(_with_paths(block.text, tmp_path), "utf-8")
                names |= runpy.run_path(str(script), names)
                assert _shown_after(page, block) in capsys.readouterr().out, place
                if "matches" in names and page not in ("docs/tutorial.md", "docs/row-streams.md"):
                    assert names["matches"].count() == 3, place
            for stream in spark.streams.active:
                stream.processAllAvailable()
        finally:
            for stream in spark.streams.active:
                stream.stop()


def test_what_is_only_parsed_is_still_there() -> None:
    texts = [block.text for blocks in _PAGES.values() for block in blocks]
    for part in _PARSED_ONLY:
        assert any(part in text for text in texts), part


# --- what the pages speak of ----------------------------------------------------------------------


def _names(page: str, spark: Any, folder: Path) -> dict[str, Any]:
    """The farm of the README in all the names that documents have for it, and what a page adds."""
    _files("README.md")
    _files(page)
    if page == "docs/tutorial.md":
        return _shop(spark, folder)
    columns = "type STRING, id BIGINT, value DOUBLE, ts TIMESTAMP"
    farm = spark.read.csv(str(folder / "farm.csv"), schema=columns, header=True)
    farm = farm.selectExpr("*", "monotonically_increasing_id() AS event_id")
    for name in ("readings", "in"):
        farm.write.parquet(str(folder / name))
    main(["compile", "fire.cel"])
    fire_udf = importlib.import_module("fire_udf")
    stored = str(folder / "readings")
    names = {
        "spark": spark,
        "events": spark.read.parquet(stored),
        "df": spark.read.parquet(stored),
        "readings": spark.readStream.schema(farm.schema).parquet(stored),
        "fire_udf": fire_udf,
        "fire": fire_udf,
        "query": celc.compile(Path("fire.cel").read_text("utf-8")),
        "expand": importlib.import_module("celc_runtime").expand,
    }
    if page == "docs/many.md":
        _rules()
    if page == "docs/row-streams.md":
        frame = spark.createDataFrame([], "symbol STRING, ts TIMESTAMP, price DOUBLE")
        frame.write.parquet(str(folder / "quotes"))
        names["quotes"] = spark.readStream.schema(frame.schema).parquet(str(folder / "quotes"))
    if page == "docs/match-recognize.md":
        rows = [("X", ts, price) for ts, price in enumerate((3.0, 2.0, 1.0, 5.0))]
        frame = spark.createDataFrame(rows, "symbol STRING, ts BIGINT, price DOUBLE")
        frame.createOrReplaceTempView("quotes")
    return names


def _files(page: str) -> None:
    for block in _PAGES[page]:
        name = block.comment.removeprefix("file: ")
        if name != block.comment and not name.endswith(".py"):
            Path(name).write_text(block.text, "utf-8")


def _rules() -> None:
    """Two files of rules in one module, and the farm as a file of Parquet."""
    from pyarrow import csv, parquet

    text = Path("fire.cel").read_text("utf-8")
    streams = text[: text.index("QUERY")].rpartition("--")[0]
    for name, pattern in (("hot", "T AS x FILTER x.value > 40"), ("dry", "H AS x")):
        query = f"QUERY {name}: SELECT x[value] FROM Farm WHERE {pattern} PARTITION BY id"
        Path(f"{name}.cel").write_text(streams + query, "utf-8")
    main(["compile", "hot.cel", "dry.cel", "--order-by", "ts", "-o", "rules_udf.py"])
    parquet.write_table(csv.read_csv("farm.csv"), "events.parquet")


def _shop(spark: Any, folder: Path) -> dict[str, Any]:
    columns = "type STRING, customer STRING, item STRING, price DOUBLE, ts TIMESTAMP"
    shop = spark.read.csv(str(folder / "shop.csv"), schema=columns, header=True)
    shop.write.parquet(str(folder / "shop"))
    spark.readStream.schema(columns).parquet(str(folder / "shop")).createOrReplaceTempView("shop")
    bought = celc.compile(Path("bought.cel").read_text("utf-8"), name="bought.cel")
    return {"spark": spark, "bought": bought}


@contextmanager
def _modules(folder: Path) -> Iterator[None]:
    """The modules of a folder are imported anew, and forgotten."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]


def _with_paths(text: str, folder: Path) -> str:
    """The text with the names of files as paths into the folder."""
    before = r'((?:parquet|csv|start)\(|"checkpointLocation", )"([\w.]+)"'
    return re.sub(before, lambda found: f'{found[1]}"{folder / found[2]}"', text)


def _shown_after(page: str, block: Block) -> str:
    """The block of text after one that prints; else nothing."""
    blocks = _PAGES[page]
    after = blocks[blocks.index(block) + 1 :]
    prints = re.search(r"print\(|\.show\(", block.text)
    if not (prints and after and after[0].language == "text"):
        return ""
    return after[0].text
