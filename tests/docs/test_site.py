"""The site has an entry for every public name and a place for every page."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def load_tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = load_tool("check_site")


def things():
    """Every public object that is ours, under its first name."""
    for name, paths in sorted(site.public_names().items()):
        module, _, attribute = paths[0].rpartition(".")
        thing = getattr(sys.modules[module], attribute)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield pytest.param(thing, id=name.removeprefix("polymargin."))


@pytest.mark.parametrize("thing", list(things()))
def test_every_public_class_and_function_has_an_example_that_runs(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib").use("Agg")
    if "onnx" in thing.__name__:
        pytest.importorskip("skl2onnx")
    if "Dask" in thing.__name__:
        pytest.importorskip("distributed")
        monkeypatch.setitem(import_module("dask.config").config, "scheduler", "threads")
    found = doctest.DocTestFinder(recurse=False).find(thing, globs={})
    examples = [test for test in found if test.examples]
    assert examples, f"{thing.__qualname__} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in examples:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_reference_lists_every_public_name():
    """As far as can be seen without building the site."""
    entries = set()
    for directive in re.findall(r"```\{eval-rst\}\n(.*?)```", (DOCS / "api.md").read_text(), re.S):
        (module,) = re.findall(r"currentmodule:: (\S+)", directive)
        entries |= set(re.findall(r"automodule:: (\S+)", directive))
        entries |= {f"{module}.{name}" for name in re.findall(r"^   (\w[\w.]*)$", directive, re.M)}
    assert site.undocumented(entries) == []


def test_every_page_has_its_place():
    listed = set()
    for page in ("index", "guides", "results", "development"):
        for tree in re.findall(
            r"```\{toctree\}\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.S
        ):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert pages - listed == set()


def test_the_inventory_of_a_built_site(tmp_path):
    """The reference alone, built by Sphinx without a warning."""
    for module in ("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx_gallery"):
        if importlib.util.find_spec(module) is None:
            pytest.skip("needs the extra `docs`")
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    shutil.copy(DOCS / "api.md", source / "docs" / "index.md")
    shutil.copytree(DOCS / "_templates", source / "docs" / "_templates")
    settings = {
        "extensions": "myst_parser,numpydoc,sphinx.ext.autodoc,sphinx.ext.autosummary",
        "html_theme": "basic",
        "exclude_patterns": "",
        "include_patterns": "docs/**",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-c", DOCS, *options, source, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    entries = site.inventory(tmp_path / "site" / "objects.inv")
    assert site.undocumented(entries) == []
    assert "polymargin.LinearMulticlassSVC.predict_top_k" in entries


def test_a_name_without_an_entry_is_found():
    entries = {name for paths in site.public_names().values() for name in paths}
    assert site.undocumented(entries) == []
    assert site.undocumented(entries - {"polymargin.DualSolver", "polymargin.solvers.DualSolver"})
