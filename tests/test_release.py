"""What is released is one thing, with the same version and needs wherever they are written."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "pyproject.toml", "CHANGELOG.md", "CITATION.cff", "README.md", "conda/recipe.yaml",
    "src/polymargin/version.py",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    not (ROOT / "conda").exists(), reason="an sdist has neither the recipe nor the workflows"
)


def load_tool():
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "tools/release_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load_tool()


def test_nothing_disagrees():
    assert list(release.disagreements(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("src/polymargin/version.py", '"0', '"7', "CITATION.cff has the version"),
        ("CITATION.cff", "version: 0", "version: 7", "CITATION.cff has the version"),
        ("CHANGELOG.md", "## [0", "## [7", "CHANGELOG.md has the version"),
        ("conda/recipe.yaml", 'version: "0', 'version: "7', "recipe.yaml has the version"),
        ("conda/recipe.yaml", 'python_min: "3.11', 'python_min: "3.10', "the oldest Python"),
        ("pyproject.toml", ">=3.11", ">=3.12", "the oldest Python"),
        ("README.md", "Python 3.11 to", "Python 3.10 to", "README.md"),
        ("conda/recipe.yaml", "scipy >=1.13", "scipy >=1.12", "recipe.yaml, run"),
        ("pyproject.toml", '"joblib>=1.3",', "", "recipe.yaml, run"),
        ("pyproject.toml", '"nanobind>=2.9"', '"nanobind>=2.8"', "recipe.yaml, host"),
        ("conda/recipe.yaml", "polymargin.cli:main", "polymargin:main", "entry points"),
        ("conda/recipe.yaml", "summary: Multi", "summary: Many", "summary"),
        ("CITATION.cff", "license: BSD-3", "license: BSD-2", "licenses"),
        ("pyproject.toml", 'dynamic = ["version"]', 'version = "0"', "a version of its own"),
    ],
)
def test_a_disagreement_is_found(tmp_path, name, old, new, told):
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert any(told in problem for problem in release.disagreements(tmp_path))


def test_a_tag_has_to_be_the_version():
    assert any("the tag is v7" in problem for problem in release.disagreements(ROOT, "v7"))


def test_what_an_sdist_may_hold():
    names = list(release.IN_SDIST)
    assert list(release.problems_of_sdist(names)) == []
    assert list(release.problems_of_sdist(names[1:])) == [f"the sdist has no {names[0]}"]
    for stray in ("src/polymargin/_core.so", ".github/workflows/ci.yml", "tests/x.pyc"):
        assert list(release.problems_of_sdist([*names, stray])) == [f"the sdist has {stray}"]


def test_what_a_wheel_may_hold():
    sources = ["src/polymargin/__init__.py", "src/polymargin/report/page.css", "src/core/x.hpp"]
    names = [
        "polymargin/__init__.py",
        "polymargin/report/page.css",
        "polymargin/_core_baseline.abi3.so",
        "polymargin/_core.pyi",
        "polymargin-0.1.0.dist-info/licenses/LICENSE",
    ]
    assert list(release.problems_of_wheel(names, sources)) == []
    for missing in names:
        rest = [name for name in names if name != missing]
        assert len(list(release.problems_of_wheel(rest, sources))) == 1, missing
    assert list(release.problems_of_wheel([*names, "tests/a.py"], sources)) == [
        "the wheel has tests/a.py"
    ]


def test_metadata_are_those_of_the_checkout():
    from importlib.metadata import distribution

    text = distribution("polymargin").read_text("METADATA")
    assert list(release.problems_of_metadata(text, ROOT)) == []
    for old, new in (
        ("\nVersion: ", "\nVersion: 7."),
        ("Requires-Python: >=", "Requires-Python: >=2, >="),
        ("Requires-Dist: scipy", "Requires-Dist: sky"),
        ("Provides-Extra: plot", "Provides-Extra: plots"),
        ("# polymargin", "# marginpoly"),
    ):
        assert old in text
        broken = text.replace(old, new, 1)
        assert len(list(release.problems_of_metadata(broken, ROOT))) == 1, new


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
@pytest.mark.skipif(os.name == "nt", reason="the compiler is a shell script")
@pytest.mark.parametrize("compiler", ["none", "old"])
def test_without_a_compiler_the_build_says_what_to_do(tmp_path, compiler):
    """An old one is one that does not know concepts."""
    path = tmp_path / "c++"
    if compiler == "old":
        if shutil.which("c++") is None:
            pytest.skip("needs a compiler that can be made to look old")
        path.write_text('#!/bin/sh\nexec c++ "$@" -std=c++17\n')
        path.chmod(0o755)
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "build"],
        env={**os.environ, "CXX": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "needs a C++20 compiler" in done.stderr
    assert "--only-binary polymargin polymargin" in done.stderr


def workflow():
    return yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8"))


def test_only_what_was_tested_is_published_and_by_no_secret():
    jobs = workflow()["jobs"]
    publish = jobs.pop("publish")
    assert set(publish["needs"]) == set(jobs)
    assert publish["permissions"] == {
        "contents": "read",
        "id-token": "write",
        "attestations": "write",
    }
    assert "tag" in publish["if"]
    assert "secrets." not in (ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8")
    assert all("permissions" not in job for job in jobs.values())


def test_wheels_are_made_for_every_platform():
    names = {
        entry["name"] for entry in workflow()["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    }
    assert names == {
        "manylinux-x86_64", "manylinux-aarch64", "musllinux-x86_64", "musllinux-aarch64",
        "macos-arm64", "macos-x86_64", "windows-amd64",
    }  # fmt: skip


def test_the_smoke_test_knows_another_version():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/smoke.py", "7"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "not 7" in done.stdout
