"""Write what the result files say into ``docs/papers.md``: the claims and a section per experiment.

    python -m benchmarks.papers.page [--check]

The text between the two marker lines of a block is replaced, everything else in the page is left as
it is. The numbers come from ``benchmarks/results/papers/*.json`` alone. ``--check`` changes nothing
and fails when the page is not up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import PROJECT_ROOT
from benchmarks.papers import common

PAGE = PROJECT_ROOT / "docs" / "papers.md"
VERDICTS = {"yes": "holds", "no": "does not hold", "partly": "partly"}
ORDER = ("blondel", "keerthi", "walrus", "lapin", "larank")
SECTIONS = {
    "blondel_table1": "The data (Blondel et al. 2014, table I)",
    "blondel_figure1": "Convergence (Blondel et al. 2014, figure 1)",
    "blondel_figure2": "The number of classes (Blondel et al. 2014, figure 2)",
    "keerthi_figures2_3": "SDM, EG and cutting planes (Keerthi et al. 2008, figures 2 and 3)",
    "keerthi_figure5": "One-vs-rest on the way (Keerthi et al. 2008, figure 5)",
    "keerthi_tables": "Three losses with C tuned for each (Keerthi et al. 2008, tables 4.2, 4.3)",
    "walrus_table1": "The data (Wang and Scott 2021, table 1)",
    "walrus_figure1": "Objectives on the way (Wang and Scott 2021, figure 1)",
    "walrus_convergence": "Linear convergence (Wang and Scott 2021, theorem 3.6)",
    "walrus_table7": "Stopping early in cross-validation (Wang and Scott 2021, table 7)",
    "walrus_tables8_9": "General-purpose QP solvers (Wang and Scott 2021, tables 8 and 9)",
    "lapin_table1": "Top-k accuracy (Lapin et al. 2015, table 1 in spirit)",
    "lapin_projection": "The top-k projection (Lapin et al. 2015, supplement)",
    "larank_scale": "The scale of mnist's pixels (for Bordes et al. 2007, table 1)",
    "larank_table2": "LaRank and batch solvers (Bordes et al. 2007, tables 2 and 3)",
    "larank_figures": "Error against kernel evaluations (Bordes et al. 2007, figures 1 and 2)",
}


def load_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Result files that have claims, paper by paper."""

    def rank(path: Path) -> tuple[int, str]:
        paper = path.stem.split("_")[0]
        return (ORDER.index(paper) if paper in ORDER else len(ORDER), path.stem)

    found = {}
    for path in sorted(folder.glob("*.json"), key=rank):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and content.get("claims"):
            found[path.stem] = content
    return found


def claims_block(results: dict[str, dict[str, Any]]) -> str:
    """All claims in one table."""
    rows = [
        [f"{claim['paper']}: {claim['claim']}", VERDICTS[claim["holds"]]]
        for content in results.values()
        for claim in content["claims"]
    ]
    return common.markdown_table(["claim", "verdict"], rows).replace("--:", "---")


def section(name: str, content: dict[str, Any], folder: Path) -> str:
    """Command, claims with what was seen, figure, and where the tables are."""
    lines = [f"## {SECTIONS[name]}", "", f"    python -m benchmarks.papers.{name}", ""]
    for claim in content["claims"]:
        lines += [
            f"**Claim.** {_sentence(claim['claim'])} **Seen.** {_sentence(claim['measured'])} "
            f"**Verdict.** {_sentence(VERDICTS[claim['holds']])}",
            "",
        ]
    if (folder / f"{name}.png").exists():
        lines += [f"![{name}](../benchmarks/results/papers/{name}.png)", ""]
    covered = "the reduced version" if content["run"] == "quick" else "the whole protocol"
    if content["missing_cells"]:
        covered += f", {content['missing_cells']} cells of it not run"
    lines += [f"[All tables](../benchmarks/results/papers/{name}.md); what ran is {covered}.", ""]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def sections_block(results: dict[str, dict[str, Any]], folder: Path) -> str:
    """A section for each experiment that has no text of its own."""
    return "\n".join(section(n, results[n], folder) for n in SECTIONS if n in results)


def fill(page: str, block: str, text: str) -> str:
    """Put a text between the block's markers."""
    begin, end = f"<!-- {block}: written by benchmarks.papers.page -->", f"<!-- end of {block} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page needs the lines {begin!r} and {end!r} once each")
    before, rest = page.split(begin)
    return before + begin + "\n\n" + text.strip() + "\n\n" + end + rest.split(end)[1]


def render(page: str, folder: Path) -> str:
    """The page with both blocks filled anew."""
    results = load_results(folder)
    page = fill(page, "claims", claims_block(results))
    return fill(page, "sections", sections_block(results, folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Update the page, or see whether it needs to be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when the page is out of date")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--results", type=Path, default=common.FOLDER)
    options = parser.parse_args(argv)
    old = options.page.read_text()
    new = render(old, options.results)
    if options.check:
        if new != old:
            print(f"{options.page.name} is out of date: run python -m benchmarks.papers.page")
            return 1
        return 0
    options.page.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
