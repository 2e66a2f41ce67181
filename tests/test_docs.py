"""The documents hold: what they show of celc is compiled and run here, and compared with the page.

An HTML comment on the line before a fenced block says what the block is:

    <!-- file: fire.cel -->     a file, there for the blocks after it; if its name ends in .cel it
                                must compile, if in .py it must be Python
    <!-- wrong file: q.cel -->  a query that must not compile
    <!-- declarations -->       streams without a query, for the ```cel and ```text blocks after it
    <!-- run -->                ```console   `$ celc …` commands, each with all that it prints
                                ```python    a session with `>>>`, as doctest reads it
                                ```text      lines `query`, `events`, `answer` (see `Example`)
    <!-- spark -->              a session with `>>>` that has `spark`; on_spark/test_spark_docs.py
                                runs it
    <!-- python: job.py -->     what `python job.py` prints, of a file of the page;
                                test_readme_on_spark.py runs it
    <!-- shape: 7 -->           an answer of docs/how-do-i-say.md; test_how_do_i_say.py runs it
    <!-- worked: a/b.cel -->    that file of examples/worked; a query without the streams at its
                                top, which are the declarations; of an answer, some of the lines

Blocks of one document share a folder and run in the order of the page; sessions with `>>>` share
their names. In a console block and in a worked answer, a line that is just `…` stands for lines
left out. A ```cel block must compile also without a comment. A ```python block without one is
parsed here, and on_spark/test_spark_scripts.py runs it.
"""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from places import ROOT

import celc
import celc.codegen.text.layout
import celc.driver.matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.interfaces.cli import main
from celc.options import Options
from celc.plan.program import Program
from celc.plan.strategy import BranchFree, ByDefinition, Checked, Keyed, StraightLine, UnionLists

PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
)
FOLDERS = ("docs", "celc", "runtime", "generated")
DOCUMENTS = [
    *map(ROOT.joinpath, PAGES),
    *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))),
]
ERRORS = ROOT / "docs" / "errors.md"
WORKED = ROOT / "examples" / "worked"


# --- what a document shows ------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line in the document, its language, its comment, its text."""

    line: int
    language: str
    comment: str
    text: str


def blocks_in(document: str) -> Iterator[Block]:
    comment, fence, start, lines = "", None, 0, list[str]()
    for number, line in enumerate(document.splitlines(), start=1):
        if fence is None:
            opened = re.fullmatch(r"(`{3,})(\w*)", line)
            if opened:
                fence, language, start, lines = opened[1], opened[2], number + 1, []
            else:
                told = re.fullmatch(r"<!-- (.*) -->", line)
                comment = told[1] if told else ""
        elif line == fence:
            yield Block(start, language, comment, "".join(f"{one}\n" for one in lines))
            comment, fence = "", None
        else:
            lines.append(line)
    assert fence is None, f"the block that begins in line {start} is never closed"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    declarations = ""
    names: dict[str, object] = {}
    with interpreted():
        for block in blocks_in(path.read_text(encoding="utf-8")):
            place = f"{path.name}, line {block.line}"
            match block.comment.partition(": "), block.language:
                case ("file", _, name), _:
                    Path(name).parent.mkdir(exist_ok=True)
                    Path(name).write_text(block.text, encoding="utf-8")
                    if name.endswith(".cel"):
                        check_query(block.text, place)
                    elif name.endswith(".py"):
                        ast.parse(block.text, place)
                case ("wrong file", _, name), _:
                    Path(name).write_text(block.text, encoding="utf-8")
                    with pytest.raises(celc.CelError):
                        celc.compile(block.text)
                case ("declarations", _, _), "cel":
                    declarations = block.text
                case ("run", _, _), "console":
                    check_console(block.text, place, capfd)
                case ("run", _, _), "python":
                    check_session(block, place, names)
                case ("python", _, name), "text":
                    assert Path(name).exists(), place
                case ("spark", _, _), "python":
                    assert ">>> " in block.text, place
                case ("run", _, _), "text":
                    check_examples(block.text, declarations, place)
                case ("shape", _, _), "text":
                    pass  # test_how_do_i_say.py runs it
                case ("worked", _, name), _:
                    check_worked(name, block.text, declarations, place)
                case ("", _, _), "cel":
                    own = "CREATE STREAM" in block.text
                    check_query(block.text if own else declarations + block.text, place)
                case ("", _, _), "python":
                    ast.parse(block.text, place)
                case ("", _, _), _:
                    pass
                case (comment, _, _), language:
                    pytest.fail(f"{place}: nothing is known of `{comment}` before ```{language}")


def test_the_documents_show_something() -> None:
    shown = [block for path in DOCUMENTS for block in blocks_in(path.read_text(encoding="utf-8"))]
    assert sum(block.comment == "run" for block in shown) >= 20


def test_conditions_are_decided_as_the_table_says() -> None:
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    streams = next(b.text for b in blocks_in(page) if b.comment == "declarations")
    rows = re.findall(r"(?m)^\| `(.*?)` \| ([a-z, ]+) \| [^0-9]", page)
    assert len(rows) >= 20
    for text, ways in rows:
        source = Source("q.cel", streams + text)
        (stages,) = compile_source(source, Options()).queries
        assert ways == ", ".join(ways_of(stages.program)), text


_CODES = {
    BranchFree: "without branches",
    StraightLine: "straight-line",
    UnionLists: "general engine",
}


def test_queries_have_the_code_that_the_table_of_figures_says() -> None:
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(.*?)` \| ([a-z -]+) \| [0-9]", page)
    assert len(rows) >= 8
    types = ", ".join(f"EVENT {name} {{}}" for name in "ABCDEFGHIJ")
    for text, code in rows:
        query = f"SELECT * WHERE {text} WITHIN 100 EVENTS"
        source = Source("q.cel", f"CREATE STREAM S {{ {types} }}\n{query}")
        (stages,) = compile_source(source, Options()).queries
        assert code == _CODES[type(stages.program.update)], text


@pytest.mark.parametrize(
    ("page", "column", "least"), [("cheat-sheet", 0, 40), ("coming-from", 1, 80)]
)
def test_tables_of_operators_hold(page: str, column: int, least: int) -> None:
    """Their rows have a query, events, and the starts and ends of the matches."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    types = ", ".join(f"EVENT {name} {{ value: INT }}" for name in "ABC")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    rows = [
        (row[column].strip("`"), row[2].strip("`"), row[3].strip("`"))
        for row in cells
        if len(row) > 3 and re.fullmatch(r"`[0-9. ]+`", row[3])
    ]
    assert len(rows) >= least
    answers: dict[tuple[str, str], str] = {}
    with interpreted():
        for query, events, answer in rows:
            if (query, events) not in answers:
                matcher = celc.compile(f"CREATE STREAM S {{ {types} }}\n{query}")
                found = matcher.match_table(table_of(Example(query, events, ()))).to_pylist()
                ends = [f"{row['start_pos']}..{row['end_pos']}" for row in found]
                answers[query, events] = " ".join(ends)
            assert answers[query, events] == answer, query


def test_each_worked_file_is_shown() -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    shown = [block.comment.removeprefix("worked: ") for block in blocks_in(page)]
    files = {str(path.relative_to(WORKED)) for path in WORKED.glob("*/*")}
    assert files <= set(shown)


MAPS = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "README.md",
    *(ROOT / "celc").rglob("README.md"),
    *(ROOT / "runtime" / "celc_runtime").rglob("README.md"),
]
"""The documents that say where something is in the tree."""


@pytest.mark.parametrize("path", MAPS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_map_names_are_there(path: Path) -> None:
    """In backticks, from the project's root, from the folder of the page, or from a package."""
    named = set(re.findall(r"`([\w./-]+(?:\.(?:py|lark|txt|jinja)|/))`", path.read_text("utf-8")))
    assert named, "a map names files"
    roots = (ROOT, path.parent, ROOT / "runtime", ROOT / "celc", ROOT / "runtime" / "celc_runtime")
    beside = [folder for root in roots[3:] for folder in root.iterdir() if folder.is_dir()]
    missing = [
        name for name in named if not any((root / name).exists() for root in (*roots, *beside))
    ]
    assert missing == []


def test_the_map_is_read_at_a_glance() -> None:
    """Within 150 lines, no cell of a table longer than two lines; more is in the folders' pages."""
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= 150
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
    assert len(rows) > 50
    shown = [re.sub(r"\]\([^)]*\)", "]", cell) for row in rows for cell in row]
    assert [cell for cell in shown if len(cell) > 200] == []


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        code = r"(?s)```.*?\n *```|`[^`\n]*`"
        text = re.sub(code, "", path.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, anchor = target.partition("#")
            if "://" in file:
                continue
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), f"{path.name} links to {target}"
            assert not anchor or anchor in anchors_of(there), f"{path.name} links to {target}"


def anchors_of(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- how it is checked ----------------------------------------------------------------------------


@contextmanager
def interpreted() -> Iterator[None]:
    """Modules generated inside run as plain Python, and are laid out as the templates leave them.

    Compiling and formatting them would take a second or two for each of the many examples.
    """

    load = celc.driver.matcher.module_of

    def plain(parts: Sequence[str]) -> str:
        text = "".join(parts)
        line = "from celc_runtime.jit.kernels import njit\n"
        assert line in text
        return text.replace(line, "njit = lambda **_: lambda f: f\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(celc.codegen.text.layout, "formatted", plain)
        patch.setattr(celc.driver.matcher, "module_of", lambda text: load(plain(text)))
        yield


def ways_of(program: Program) -> Iterator[str]:
    """How conditions across events are decided, in the words of docs/costs.md."""
    listing = program.listing
    keyed = isinstance(program.update, Keyed)
    if isinstance(listing, ByDefinition):
        yield "definition"
    elif not keyed and not isinstance(listing, Checked):
        yield "automaton"
    if keyed:
        yield "keys"
    if isinstance(listing, Checked) and listing.asks:
        yield "checks"
    if isinstance(listing, Checked) and (listing.distinct or listing.selector):
        yield from ("collected",) if not listing.in_order else ()


def check_query(text: str, place: str) -> None:
    errors = [found for found in celc.check(text) if found.severity == "error"]
    assert not errors, f"{place}: {errors}"


def check_console(text: str, place: str, capfd: pytest.CaptureFixture[str]) -> None:
    for shown in re.split(r"(?m)^\$ ", text)[1:]:
        command, _, printed = shown.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "celc", f"{place}: only celc can be run here, not {program}"
        capfd.readouterr()
        main(arguments)
        out, err = capfd.readouterr()
        said = "".join(f"{line.rstrip()}\n" for line in (err + out).strip("\n").splitlines())
        assert matches_shown(printed.strip("\n"), said), f"{place}: `{command}` prints\n{said}"


def matches_shown(shown: str, text: str) -> bool:
    """Whether the text is what is shown, where a line `…` stands for any lines."""
    wanted = "".join(
        "(?:.*\n)*" if line == "…" else re.escape(f"{line}\n") for line in shown.splitlines()
    )
    return re.fullmatch(wanted, text) is not None


def check_session(block: Block, place: str, names: dict[str, object]) -> None:
    """`names` are those of the sessions before, and get those of this one."""
    session = doctest.DocTestParser().get_doctest(block.text, names, place, None, block.line)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=told.append, clear_globs=False)
    names.update(session.globs)
    assert session.examples
    assert not told, "".join(told)


@dataclass(frozen=True)
class Example:
    """A query, the events it reads, and its answer.

    An event is written as its type and its value, `A5`; where that is NULL, `A`. A match is written
    as its start, its end, and the positions of each label: `0..2  x={0,1} y={2}`.
    """

    query: str
    events: str
    answer: tuple[str, ...]


def examples_in(text: str) -> Iterator[Example]:
    for part in text.strip("\n").split("\n\n"):
        fields: dict[str, list[str]] = {}
        for line in part.splitlines():
            name, rest = line[:8].strip(), line[8:].strip()
            if name:
                field = fields.setdefault(name, [])
            field.append(rest)
        assert list(fields) == ["query", "events", "answer"], part
        answer = tuple(" ".join(line.split()) for line in fields["answer"])
        yield Example("\n".join(fields["query"]), " ".join(fields["events"]), answer)


def check_examples(text: str, declarations: str, place: str) -> None:
    for example in examples_in(text):
        matcher = celc.compile(declarations + example.query)
        (query,) = matcher.queries.values()
        found = [
            shown_match(query, row) for row in query.match_table(table_of(example)).to_pylist()
        ]
        assert found == [
            one for one in example.answer if one != "none"
        ], f"{place}: {example.query}"


def table_of(example: Example) -> pa.Table:
    events = [re.fullmatch(r"([A-Z])(-?\d+)?", event) for event in example.events.split()]
    assert all(events), example.events
    values = [int(event[2]) if event and event[2] else None for event in events]
    return pa.table(
        {
            "type": pa.array([event and event[1] for event in events], pa.string()),
            "value": pa.array(values, pa.int32()),
        }
    )


def check_worked(name: str, shown: str, declarations: str, place: str) -> None:
    text = (WORKED / name).read_text(encoding="utf-8")
    if name.endswith(".cel"):
        assert text == f"{declarations}\n{shown}", f"{place}: {name} differs"
    else:
        assert matches_shown(shown, text), f"{place}: {name} differs"


def shown_match(query: CompiledQuery, row: dict[str, object]) -> str:
    parts = [f"{row['start_pos']}..{row['end_pos']}"]
    for label in query.plan.answer.labels:
        events = row[label.name]
        assert isinstance(events, list)
        parts.append(f"{label.name}={{{','.join(str(event['pos']) for event in events)}}}")
    return " ".join(parts)


# --- error codes ----------------------------------------------------------------------------------


def codes_in_code() -> Iterator[str]:
    """A regular expression for the codes of each diagnostic that the compiler makes."""
    for path in sorted((ROOT / "celc").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # One file in six has such a call, and to parse all of them takes seconds.
        if not re.search(r"\b(error|warning|unknown)\(", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("error", "warning", "unknown") and node.args:
                yield from _codes(node.args[0])


def _codes(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(code)):
            yield re.escape(code)
        case ast.IfExp():
            yield from _codes(node.body)
            yield from _codes(node.orelse)
        case ast.JoinedStr():
            yield "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z]+"
                for part in node.values
            )
        case _:
            # The two functions that make a diagnostic pass on the code they are given.
            assert isinstance(node, ast.Name), ast.unparse(node)


def codes_in_document() -> list[str]:
    """The codes in the first column of the tables of docs/errors.md."""
    return re.findall(r"(?m)^\| `([a-z-]+)` \|", ERRORS.read_text(encoding="utf-8"))


def test_every_code_has_one_line() -> None:
    documented = codes_in_document()
    assert len(documented) == len(set(documented))
    undocumented = {
        code for code in codes_in_code() if not any(re.fullmatch(code, one) for one in documented)
    }
    assert not undocumented


def test_every_documented_code_exists() -> None:
    known = set(codes_in_code())
    invented = {
        one for one in codes_in_document() if not any(re.fullmatch(code, one) for code in known)
    }
    assert not invented


def test_codes_that_people_see_are_documented() -> None:
    goldens = (ROOT / "tests" / "errors").rglob("*.expected")
    texts = [path.read_text(encoding="utf-8") for path in goldens]
    seen = set(re.findall(r"(?m): (?:error|warning)\[([a-z-]+)\]: ", "\n".join(texts)))
    assert seen
    assert not seen - set(codes_in_document())


def test_errors_and_warnings_stand_under_their_headings() -> None:
    errors, _, warnings = ERRORS.read_text(encoding="utf-8").partition("\n## Warnings\n")
    goldens = (ROOT / "tests" / "errors").rglob("*.expected")
    for path in goldens:
        for severity, code in re.findall(
            r": (error|warning)\[([a-z-]+)\]: ", path.read_text(encoding="utf-8")
        ):
            part = errors if severity == "error" else warnings
            assert f"| `{code}` |" in part, f"{code} is no {severity} in docs/errors.md"
