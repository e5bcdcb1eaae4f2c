"""Everything about a release that can be checked before anything is published.

    python tools/release_check.py [--dist dist] [--tag v1.2.3] [--quick]

What says the version, the supported Pythons and the dependencies agrees; the sdist builds, and the
wheel from it; both hold what they should and nothing else; their metadata are those of
pyproject.toml and render; the wheel installs into empty environments with the oldest and with the
newest dependencies and passes `tools/smoke.py`; without a compiler the sdist says what is missing.
The environments come from pip's index; nothing else is asked of the network. `--quick` stops before
them. The CI workflow gives the tag.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"
COMPILED = re.compile(r"\.(so|pyd|dylib|o|pyc|dll)$")
IN_SDIST = (
    "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff",
    "src/core/bindings/module.cpp", "src/polymargin/__init__.py", "src/polymargin/py.typed",
    "tests/conftest.py",
)  # fmt: skip
NOT_IN_SDIST = (
    ".ci/",
    ".github/",
    "conda/",
    "build/",
    "dist/",
    ".venv",
    "src/polymargin/_core.pyi",
)


def text_of(root: Path, name: str) -> str:
    """A file of the checkout."""
    return (root / name).read_text(encoding="utf-8")


def version_of(root: Path) -> str:
    """The version, from the one place that has it."""
    return re.search(r'__version__ = "(.+)"', text_of(root, "src/polymargin/version.py"))[1]


def normal(requirement: str) -> str:
    """``name>=1.2 ; marker`` without spaces, in small letters."""
    return requirement.replace(" ", "").replace("'", '"').lower()


# --- what has to agree ---


def disagreements(root: Path, tag: str | None = None) -> Iterator[str]:
    """Places that contradict `version.py` or pyproject.toml."""
    version = version_of(root)
    project = tomllib.loads(text_of(root, "pyproject.toml"))["project"]
    recipe = yaml.safe_load(text_of(root, "conda/recipe.yaml"))
    citation = yaml.safe_load(text_of(root, "CITATION.cff"))
    if "version" in project or "version" not in project.get("dynamic", ()):
        yield "pyproject.toml has a version of its own"
    newest = re.search(r"^## \[(.+?)\]( - (\S+))?", text_of(root, "CHANGELOG.md"), re.M)
    for place, found in (
        ("CITATION.cff", citation["version"]),
        ("conda/recipe.yaml", recipe["context"]["version"]),
        ("the first heading of CHANGELOG.md", newest[1]),
    ):
        if found != version:
            yield f"{place} has the version {found}, not {version}"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}"
    if tag is not None and newest[3] == "unreleased":
        yield "CHANGELOG.md calls the version unreleased"
    yield from _other_disagreements(root, project, recipe, citation)


def _other_disagreements(
    root: Path, project: dict[str, Any], recipe: dict[str, Any], citation: dict[str, Any]
) -> Iterator[str]:
    backend = tomllib.loads(text_of(root, "pyproject.toml"))["build-system"]["requires"]
    oldest = project["requires-python"].removeprefix(">=")
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    if pythons[0] != oldest or recipe["context"]["python_min"] != oldest:
        yield f"the oldest Python is {oldest}, not that of the classifiers and the recipe"
    if f"Python {pythons[0]} to {pythons[-1]}" not in text_of(root, "README.md"):
        yield "README.md does not name the oldest and the newest Python of the classifiers"
    requirements = recipe["requirements"]
    for name, wanted, found in (
        ("run", project["dependencies"], requirements["run"]),
        ("host", backend, requirements["host"]),
    ):
        theirs = {normal(text) for text in found} - {"python", "pip"}
        if theirs != {normal(text) for text in wanted}:
            yield f"conda/recipe.yaml, {name}: {sorted(theirs)}, but pyproject.toml: {wanted}"
    entries = [f"{name} = {to}" for name, to in project["scripts"].items()]
    if recipe["build"]["python"]["entry_points"] != entries:
        yield "conda/recipe.yaml has other entry points"
    if recipe["about"]["summary"] != project["description"]:
        yield "conda/recipe.yaml has another summary"
    if {recipe["about"]["license"], citation["license"]} != {project["license"]}:
        yield "the licenses differ"


# --- what was built ---


def names_in(archive: Path) -> list[str]:
    """The files of an sdist, without its folder, or of a wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    with tarfile.open(archive) as opened:
        return [name.partition("/")[2] for name in opened.getnames()]


def problems_of_sdist(names: list[str]) -> Iterator[str]:
    """What an sdist lacks, or should not have."""
    for name in IN_SDIST:
        if name not in names:
            yield f"the sdist has no {name}"
    for name in names:
        if COMPILED.search(name) or name.startswith(NOT_IN_SDIST):
            yield f"the sdist has {name}"


def problems_of_wheel(names: list[str], sources: list[str]) -> Iterator[str]:
    """The same of a wheel; `sources` are the names in the sdist."""
    for source in sources:
        name = source.removeprefix("src/")
        if name.startswith("polymargin/") and Path(name).suffix and name not in names:
            yield f"the wheel has no {name}"
    for pattern in (r"_core_baseline\.\S+$", r"_core\.pyi$"):
        if not any(re.match(rf"polymargin/{pattern}", name) for name in names):
            yield f"the wheel has no {pattern}"
    for name in names:
        if not re.match(r"polymargin/|polymargin-[^/]+\.dist-info/", name) or name.endswith(".pyc"):
            yield f"the wheel has {name}"
    if not any(name.endswith("licenses/LICENSE") for name in names):
        yield "the wheel has no license"


def problems_of_metadata(text: str, root: Path) -> Iterator[str]:
    """Metadata that are not those of the checkout."""
    found = Parser().parsestr(text)
    project = tomllib.loads(text_of(root, "pyproject.toml"))["project"]
    for key, wanted in (
        ("Name", project["name"]),
        ("Version", version_of(root)),
        ("Requires-Python", project["requires-python"]),
        ("License-Expression", project["license"]),
        ("Summary", project["description"]),
    ):
        if found[key] != wanted:
            yield f"metadata: {key} is {found[key]}, not {wanted}"
    required = {normal(text) for text in found.get_all("Requires-Dist") if "extra ==" not in text}
    if required != {normal(text) for text in project["dependencies"]}:
        yield f"metadata: requires {sorted(required)}"
    if set(found.get_all("Provides-Extra")) != set(project["optional-dependencies"]):
        yield "metadata: other extras than in pyproject.toml"
    if found.get_payload().strip() != text_of(root, "README.md").strip():
        yield "metadata: the description is not README.md"


# --- what has to be run ---


def say(text: str) -> None:
    """Tell what comes next."""
    print(f"==> {text}", flush=True)


def run(*command: object, **options: Any) -> None:
    """Run a program, which must succeed."""
    subprocess.run([str(word) for word in command], check=True, **options)


def environment(folder: Path) -> Path:
    """An empty environment; its interpreter."""
    run(sys.executable, "-m", "venv", folder)
    return folder / BIN / "python"


def build(dist: Path) -> tuple[Path, Path]:
    """An sdist, and a wheel from it."""
    for old in dist.glob("polymargin-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)  # the wheel from the sdist
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel


def problems_of_files(sdist: Path, wheel: Path) -> Iterator[str]:
    """Contents and metadata of what was built."""
    sources, names = names_in(sdist), names_in(wheel)
    yield from problems_of_sdist(sources)
    yield from problems_of_wheel(names, sources)
    with zipfile.ZipFile(wheel) as opened:
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        yield from problems_of_metadata(opened.read(path).decode(), ROOT)
    with tarfile.open(sdist) as opened:
        name = f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO"
        yield from problems_of_metadata(opened.extractfile(name).read().decode(), ROOT)


def try_wheel(wheel: Path, versions: str, folder: Path) -> None:
    """Install a wheel into an empty environment and use it, far from the checkout."""
    say(f"the wheel in an empty environment, {versions} versions")
    python = environment(folder / versions)
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    if versions == "oldest":
        told = subprocess.check_output([sys.executable, ROOT / "tests" / "oldest.py"])
        (folder / "constraints.txt").write_bytes(told)
        install += ["--constraint", folder / "constraints.txt"]
    run(*install, wheel)
    run(python, "-m", "pip", "check")
    run(python, "-P", ROOT / "tools" / "smoke.py", version_of(ROOT), cwd=folder)


def problems_without_compiler(sdist: Path, folder: Path) -> Iterator[str]:
    """What pip says of the sdist where there is no compiler."""
    say("the sdist without a compiler")
    python = environment(folder / "bare")
    command = [python, "-m", "pip", "install", "--no-deps", sdist]
    nowhere = {**os.environ, "CXX": str(folder / "no-such-compiler")}
    told = subprocess.run(command, capture_output=True, text=True, env=nowhere, check=False)
    output = told.stdout + told.stderr
    print("\n".join(line for line in output.splitlines() if "polymargin" in line))
    if told.returncode == 0:
        yield "the sdist installs without a compiler"
    for text in ("needs a C++20 compiler", "wheel", "--only-binary polymargin polymargin"):
        if text not in output:
            yield f"without a compiler, the sdist does not say {text!r}"


def fail_for(problems: Iterator[str]) -> None:
    """End with the problems, if there are any."""
    found = list(problems)
    if found:
        sys.exit("\n".join(found))


def main() -> None:
    """Check, build, install, use."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the files go")
    parser.add_argument("--tag", help="the tag that is to be released")
    parser.add_argument("--quick", action="store_true", help="no environments")
    options = parser.parse_args()
    say("version, Pythons and dependencies, wherever they are written")
    fail_for(disagreements(ROOT, options.tag))
    say("an sdist, and a wheel from it")
    sdist, wheel = build(options.dist)
    say("contents and metadata")
    fail_for(problems_of_files(sdist, wheel))
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    if not options.quick:
        with tempfile.TemporaryDirectory() as folder:
            fail_for(problems_without_compiler(sdist, Path(folder)))
            for versions in ("newest", "oldest"):
                try_wheel(wheel, versions, Path(folder))
    say("ready to be tagged")
    for path in (sdist, wheel):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path)


if __name__ == "__main__":
    main()
