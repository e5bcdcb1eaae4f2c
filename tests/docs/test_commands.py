"""The commands of the pages run: each in its page's order, on small files of the names it uses.

In backticks only their names and options are checked (test_pages.py), and so are make's targets.
Other programs (pip, pre-commit) are not run: a block with one says so in a mark before it.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from polymargin.cli import main
from polymargin.io import write_directory
from tests.docs.setting import ORDERS, setting
from tests.docs.test_pages import PAGES, ROOT, Block, blocks

SHELL = ("", "sh", "console")
PROGRAM = re.compile(r"(?:\$ )?((?:polymargin|make|python|pip|echo|[./\w-]+/bin/\w+) .*)")
KEYS = [("where is my card", "card"), ("what is the weather", "weather"), ("play a song", "music")]


def lines(block: Block) -> Iterator[str]:
    for line in block.body.replace("\\\n", " ").splitlines():
        if found := PROGRAM.match(line):
            yield re.split(r"\s{2,}#", found[1])[0].strip()


def commands(page) -> list[str]:
    return [
        line
        for block in blocks(page)
        if block.kind in SHELL and block.runs
        for line in lines(block)
    ]


def stand_ins(folder) -> None:
    """The files that the pages' commands name."""
    given = setting(folder)
    small = given["small"]
    text = (folder / "train.svm").read_bytes()
    for name in ("data.svm", "test.svm", "new.svm", "big.svm"):
        (folder / name).write_bytes(text)
    write_directory(small, folder / "big.data")
    (folder / "orders.csv").write_text(ORDERS)
    rows = [
        {"text": f"{words} {n}", "label": label, "split": ("train", "test")[n % 2]}
        for n in range(12)
        for words, label in KEYS
    ]
    written = "\n".join(map(json.dumps, rows)).encode()
    (folder / "clinc150.jsonl.gz").write_bytes(gzip.compress(written))
    (folder / "new.jsonl").write_bytes(b"\n".join(written.splitlines()[:3]))
    assert (
        main(["train", str(folder / "clinc150.jsonl.gz"), "-q", "-o", str(folder / "mail.pmz")])
        == 0
    )


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any("polymargin " in c for c in commands(p))], ids=lambda p: p.stem
)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch, capsysbinary):
    stand_ins(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line in commands(page):
        given, _, command = line.rpartition(" | ")
        words = shlex.split(command)
        if words[0] != "polymargin":
            continue
        typed = shlex.split(given)[1:]
        done = subprocess.run(
            [sys.executable, "-m", *words],
            input="\n".join(typed).encode() if given else None,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr.decode()}"
        ran += 1
    assert ran


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_targets_of_the_pages_can_be_made():
    """As far as make itself can say without doing anything."""
    asked = sorted({line for page in PAGES for line in commands(page) if line.startswith("make ")})
    assert asked
    for line in asked:
        done = subprocess.run(
            [*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_what_is_not_run_is_marked():
    ours = re.compile(r"(polymargin|make|echo .* \| polymargin) ")
    for page in PAGES:
        for line in commands(page):
            assert ours.match(line) or line.startswith("python -m benchmarks"), (page.name, line)
