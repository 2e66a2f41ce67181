"""The site of the documents builds, with every link leading somewhere, and needs no network.

To build it takes 12 s, which the suite has not: what reads the built site is run by `make long`.
The links of the documents are followed by `test_docs`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT

if not all(map(importlib.util.find_spec, ("mkdocs", "material", "mkdocstrings"))):
    pytest.skip("the site needs the extra `docs`", allow_module_level=True)

_SITE = ROOT / "tools" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    done = subprocess.run(
        [*command, "-f", str(_SITE / "mkdocs.yml"), "-d", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.long
def test_each_document_is_a_page(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    documents = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) >= 20
    assert {path.with_suffix(".html").as_posix() for path in documents} <= pages
    assert {"index.html", "api.html", "changelog.html"} <= pages


@pytest.mark.long
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert not re.findall(
            r'<(?:script|img|iframe|source)[^>]* src="?(?:https?:)?//', text
        ), path
        assert not re.findall(r'<link[^>]* href="?(?:https?:)?//', text), path
        assert "fonts.g" not in text, path


@pytest.mark.long
def test_the_reference_has_the_public_names(site: Path) -> None:
    text = (site / "api.html").read_text("utf-8")
    ids = set(re.findall(r'id="(celc[\w.]+)"', text))
    names = {"compile", "check", "CelError", "Diagnostic", "Matcher"}
    assert {f"celc.{name}" for name in names} <= ids
    methods = {"match", "match_table", "match_stream", "match_compact", "register", "with_options"}
    assert {f"celc_runtime.CompiledQuery.{name}" for name in methods} <= ids
    assert {"celc_runtime.expand", "celc_runtime.finish", "celc_runtime.split_late"} <= ids
    # Parameters are items of a list.
    assert re.search(r"<li>\s*(?:<p>)?<code>max_work</code>: the most steps", text)


@pytest.mark.long
def test_queries_have_colours(site: Path) -> None:
    assert "celc_colours.colour" in (site / "colours.js").read_text("utf-8")
    text = (site / "recipes" / "abandoned-cart.html").read_text("utf-8")
    assert '<script src="../colours.js">' in text
    assert re.search(r'<div class="[^"]*\bcelc\b[^"]*"><pre>', text)


@pytest.mark.long
def test_notes_for_the_tests_are_left_out(site: Path) -> None:
    text = (site / "recipes" / "abandoned-cart.html").read_text("utf-8")
    assert "Abandoned cart" in text
    assert "file: carts.cel" not in text
    assert "<!-- run" not in text


# --- the parts of it ------------------------------------------------------------------------------


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, _SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("index.md", "[a](docs/spark.md#order)", "[a](spark.md#order)"),
        ("spark.md", "[a](sql.md), [b](../README.md)", "[a](sql.md), [b](index.md)"),
        ("inside/plan.md", "[a](../../docs/costs.md)", "[a](../costs.md)"),
        (
            "spark.md",
            "`[a](docs/no.md)` [b](https://x.org)",
            "`[a](docs/no.md)` [b](https://x.org)",
        ),
        ("spark.md", "```text\n[a](/no)\n```\n", "```text\n[a](/no)\n```\n"),
        ("spark.md", "```cel\n[a](/no)\n```\n", "```{.text .celc}\n[a](/no)\n```\n"),
        ("spark.md", "<!-- run -->\n```text\n<!-- b -->\n```\n", "```text\n<!-- b -->\n```\n"),
        ("spark.md", "| `A \\| B` | `C` |\n", "| `A | B` | `C` |\n"),
    ],
)
def test_text_of_a_page(page: str, text: str, shown: str) -> None:
    assert _module("hooks").site_text(text, page) == shown


def test_a_link_out_of_the_site_is_an_error() -> None:
    with pytest.raises(Exception, match=r"docs/spark\.md links to \.\./Makefile, which is no page"):
        _module("hooks").site_text("[a](../Makefile)", "spark.md")


def test_parameters_become_a_list() -> None:
    text = "Does it.\n\n    a: one\n    more.\n    b, c: two.\n    d: none.\n    Raises E for x.\n"
    assert _module("fields").as_list(text, {"a", "b", "c"}) == (
        "Does it.\n\n- `a`: one\n    more.\n- `b`, `c`: two.\n    d: none.\n\nRaises E for x."
    )
