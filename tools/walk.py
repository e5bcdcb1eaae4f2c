"""The walk of one fit, from a trace of a real one, for docs/architecture.md.

``python tools/walk.py`` writes it into the page, ``--check`` says whether the page is up to date.
Every module of the package that ``LinearMulticlassSVC.fit`` enters is listed once, where it is
first entered.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- walk: begin -->\n", "<!-- walk: end -->\n"


def trace() -> list[tuple[str, str, str]]:
    """Module, function that was called in it first, and the module that called it."""
    from sklearn.datasets import load_digits

    from polymargin import LinearMulticlassSVC

    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    found: dict[str, tuple[str, str]] = {}

    def module_of(frame: FrameType | None) -> str | None:
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("polymargin"):
                return str(name)
            frame = frame.f_back
        return None

    def enter(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("polymargin") or name in found:
            return
        if frame.f_code.co_name in ("<module>", "<lambda>") or "property" in frame.f_code.co_name:
            return
        function = frame.f_code.co_qualname
        if function.startswith("__create_fn__"):  # of a dataclass
            function = f"{type(frame.f_locals['self']).__name__}.{frame.f_code.co_name}"
        found[name] = (function, module_of(frame.f_back) or "the caller")

    sys.setprofile(enter)
    try:
        LinearMulticlassSVC(random_state=0).fit(X, y)
    finally:
        sys.setprofile(None)
    return [(module, *rest) for module, rest in found.items()]


def summary(module: str) -> str:
    """The first sentence of a module's documentation."""
    text = inspect.getdoc(sys.modules[module]) or ""
    return text.split("\n\n")[0].replace("\n", " ").split(":mod:")[0].rstrip(".:") + "."


def page_text() -> str:
    """The walk as Markdown."""
    lines = ["| | module | entered by | first through | what it is |", "|---|---|---|---|---|"]
    for i, (module, function, caller) in enumerate(trace(), start=1):
        short, by = (name.removeprefix("polymargin.") for name in (module, caller))
        lines.append(f"| {i} | `{short}` | `{by}` | `{function}` | {summary(module)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the walk, or check it."""
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    fresh = text[:begin] + page_text() + text[end:]
    if "--check" not in sys.argv:
        PAGE.write_text(fresh)
        return 0
    if fresh != text:
        print("docs/architecture.md: the walk of a fit has changed; run python tools/walk.py")
        return 1
    print("the walk of a fit is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
