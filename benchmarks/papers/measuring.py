"""A fingerprint of the code that measures an experiment, so that a result can tell its age.

What a cell of a study depends on is found in the source of its module: the functions that call
``study.cell``, the definitions their names lead to, in that module and in those of `benchmarks` it
imports names from, and so on. Prose, tables, figures and verdicts can be written anew from the
cells and do not count; nor do docstrings and comments.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What only tells of the cells, by the names all modules give it, and what keeps them.
TELLING = {"report", "make_claims", "claims", "draw", "table", "summary", "summarise", "Study"}


@cache
def measuring_code(module: str) -> str | None:
    """Hash of what the cells of a module depend on; None for one that has no source here.

    Parameters
    ----------
    module : str
        As in ``import``.

    Returns
    -------
    str or None
        Twelve hexadecimal digits.
    """
    if _path(module) is None:
        return None
    found: dict[tuple[str, str], str] = {}
    for name in _names_of_measuring_functions(_tree(module)):
        _follow(module, name, found)
    text = "\n".join(f"{where}:{name} {found[where, name]}" for where, name in sorted(found))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    return ast.parse(path.read_text() if path else "")


def _names_of_measuring_functions(tree: ast.Module) -> set[str]:
    """All names in the functions in which a cell is measured."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(_measures(part) for part in ast.walk(node)):
            names |= set(_names(node))
    return names


def _measures(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "cell"
    )


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _follow(module: str, name: str, found: dict[tuple[str, str], str]) -> None:
    """Add a definition and those it needs."""
    if name in TELLING or (module, name) in found:
        return
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    _follow(str(node.module), alias.name, found)
        elif name in _defined(node) and not (
            isinstance(node, ast.FunctionDef) and any(_measures(part) for part in ast.walk(node))
        ):
            found[module, name] = ast.dump(_without_docstrings(node))
            for other in set(_names(node)):
                _follow(module, other, found)


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {name for target in node.targets for name in _names(target)}
    return set(_names(node.target)) if isinstance(node, ast.AnnAssign) else set()


class _NoDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node


def _without_docstrings(node: ast.stmt) -> ast.AST:
    return _NoDocstrings().visit(ast.parse(ast.unparse(node)))
