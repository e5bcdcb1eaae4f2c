"""Checks of the floor plan that no linter has; part of ``make lint``.

- No private name crosses a folder: a module or symbol that begins with an underscore is imported
  only within the folder of ``src/polymargin`` it belongs to.
- ``tests/`` mirrors ``src/``: a folder of tests for every folder of the package, and for
  ``src/core``; a test module beside them for a module beside them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "polymargin"
TESTS = ROOT / "tests"
NOT_OF_THE_PACKAGE = {
    "benchmarks",
    "core",
    "docs",
    "examples",
    "fuzz",
    "reference",
}  # folders of tests
NO_TESTS_OF_THEIR_OWN = {"io", "assets", "engines", "newton"}  # a face, styles; tests/solvers
OTHER_TESTS = {"oldest", "layout", "release"}  # of what is needed, of this, of what is shipped


def folder_of(module: str) -> str:
    """The folder of the package that a module lies in; its own name where it lies beside them."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of every ``from polymargin... import ...``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polymargin"):
            for alias in node.names:
                yield node.lineno, node.module or "", alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("polymargin"):
                    yield node.lineno, alias.name, ""


def crossing_names(package: Path = PACKAGE) -> list[str]:
    """Private names that are imported from another folder."""
    found = []
    for path in sorted(package.rglob("*.py")):
        here = path.relative_to(package).parts[0].removesuffix(".py")
        for line, module, name in imports(path):
            if here == "core" and name == "_core":  # the stub of what it chooses
                continue
            private = any(part.startswith("_") for part in [*module.split("."), name])
            if private and not name.startswith("__") and folder_of(module) != here:
                where = path.relative_to(package.parent)
                found.append(f"{where}:{line}: {module} {name} is private to another folder")
    return found


def unmirrored(package: Path = PACKAGE, tests: Path = TESTS) -> list[str]:
    """Folders and modules of tests without a counterpart, and the other way round."""
    of_package = {p.parent.name for p in package.rglob("*/*.py")} - {package.name}
    of_package -= NO_TESTS_OF_THEIR_OWN
    of_tests = {p.name for p in tests.iterdir() if (p / "__init__.py").exists()}
    found = [
        f"tests/{name}: no such folder, for src/polymargin/{name}"
        for name in sorted(of_package - of_tests)
    ]
    found += [
        f"tests/{name}: mirrors no folder of src/polymargin"
        for name in sorted(of_tests - of_package - NOT_OF_THE_PACKAGE)
    ]
    modules = {p.stem for p in package.glob("*.py")} | OTHER_TESTS
    for path in sorted(tests.glob("test_*.py")):
        if path.stem.removeprefix("test_") not in modules:
            found.append(f"tests/{path.name}: mirrors no module of src/polymargin")
    return found


def main() -> int:
    """Print what is wrong."""
    wrong = crossing_names() + unmirrored()
    print("\n".join(wrong) or "the layout is as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
