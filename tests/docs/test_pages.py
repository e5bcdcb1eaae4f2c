"""The code of every page runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from sklearn.exceptions import ConvergenceWarning

from polymargin.cli._main import app
from tests.docs.setting import BEFORE, setting

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("docs/*.md"), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING", "SECURITY"))]
)
FENCE = re.compile(
    r"^(?P<mark><!-- not run: [^\n]+ -->\n)?(?P<ticks>```+)(?P<kind>[\w{}-]*)[^\n]*\n"
    r"(?P<body>.*?)^(?P=ticks)$",
    re.M | re.S,
)
NEEDS = {"sklearn.callback": "scikit-learn 1.9", "onnx": "onnx", "dask": "Dask"}


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    page: Path
    line: int
    kind: str
    body: str
    runs: bool


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("body")) + 1
        yield Block(page, line, found["kind"], found["body"], found["mark"] is None)


def code(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.kind == "python" and block.runs]


@pytest.mark.parametrize("page", [p for p in PAGES if code(p)], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Block after block, as a reader would; see `tests.docs.setting` for what is there before."""
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = setting(tmp_path)
    for block in code(page):
        for module, what in NEEDS.items():
            if module in block.body and importlib.util.find_spec(module) is None:
                pytest.skip(f"needs {what}")
        for text, before in BEFORE.items():
            if text in block.body:
                exec(before, names)
        # as many empty lines as stand before it: tracebacks name the line of the page
        source = "\n" * (block.line - 1) + block.body
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            exec(compile(source, str(page), "exec"), names)


def test_little_is_left_out():
    """Who marks a block as not run says why; there are few."""
    left_out = [block for page in PAGES for block in blocks(page) if not block.runs]
    ran = [block for page in PAGES for block in code(page)]
    assert len(ran) > 40 and len(left_out) < 0.15 * len(ran)


def commands() -> Iterator[tuple[str, str]]:
    """Every command of a shell block, and every one in backticks, of programs that are ours."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [
            line.removeprefix("$ ")
            for block in blocks(page)
            if block.kind in ("", "sh", "console")
            for line in block.body.replace("\\\n", " ").splitlines()
        ]
        lines += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", FENCE.sub("", text))
        for line in lines:
            if not line.endswith(" ") and re.match(
                r"(polymargin|make|python -m (benchmarks|polymargin|tests)\S*)( |$)", line
            ):
                yield page.name, line.split("  #")[0].strip()


COMMANDS = sorted(set(commands()))


def check_options(arguments: list[str]) -> None:
    """The subcommand and its options are ones of the command line."""
    if not arguments or arguments[0].startswith("-"):
        known = {name for p in app.params for name in p.opts} | {"--help"}
        assert set(arguments) <= known, arguments
        return
    if arguments[0].isupper():  # a placeholder
        return
    chosen = app.get_command(click.Context(app), arguments[0])
    assert chosen is not None, f"no command {arguments[0]!r}"
    known = {name for p in chosen.params for name in (*p.opts, *p.secondary_opts)} | {"--help"}
    for argument in arguments[1:]:
        if argument.startswith("-") and argument != "-":
            assert argument.partition("=")[0] in known, f"{arguments[0]} has no option {argument}"


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=lambda text: text)
def test_a_command_exists(page, line):
    words = shlex.split(line.replace("...", "").partition(" | ")[0].partition(" > ")[0])
    if words[0] == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
        goals = [w for w in words[1:] if "=" not in w and not w.startswith("-")]
        assert set(goals) <= targets, line
    elif words[0] == "python":
        assert importlib.util.find_spec(words[2]) is not None, line
    else:
        check_options(words[1:])


LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s#]*)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    generated = ("gallery", "api")
    for target, _ in LINK.findall(text):
        there = (page.parent / target).resolve()
        made = any(part in generated for part in Path(target).parts[:1])
        assert target == "" or made or there.exists(), f"{page.name}: {target}"


def test_python_of_the_pages_is_python_3_11():
    assert sys.version_info >= (3, 11)
    for page in PAGES:
        for block in blocks(page):
            if block.kind == "python":
                compile(block.body, f"{page.name}:{block.line}", "exec")
