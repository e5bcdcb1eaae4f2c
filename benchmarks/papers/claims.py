"""The claims of all result files, paper by paper, for docs/papers.md and docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.experiments import EXPERIMENTS, PAPERS, paper_of, reasons
from benchmarks.reference_optima import read_json
from benchmarks.solvers_bench.tables import table

VERDICTS = {
    "yes": "holds",
    "partly": "partly",
    "no": "does not hold",
    "not tested": "not tested",
}
BEFORE = Path(__file__).resolve().parent / "before.json"  # counts of an earlier page
OURS = "(ours) "  # before a check of ours
NOTE = """\
What begins with (ours) is a check of ours, for instance of the data at hand, no claim of a paper,
and is not counted."""


@dataclass(frozen=True)
class Statement:
    """A claim of a result file as a page shows it.

    Attributes
    ----------
    place : str
        Table or figure of the paper.
    claim, measured : str
        What the paper says, what we saw.
    holds : {"yes", "no", "partly", "not tested"}
        The verdict.
    ours : bool
        A check of ours, not a claim of the paper.
    reason : str
        Why it does not hold, empty where that is not known.
    check : str
        What a look that tells the possible reasons apart has shown.
    """

    place: str
    claim: str
    measured: str
    holds: str
    ours: bool = False
    reason: str = ""
    check: str = ""

    @property
    def verdict(self) -> str:
        """In words."""
        return VERDICTS[self.holds]


def load_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Result files of the experiments that have one, in the order of the page.

    Raises
    ------
    ValueError
        If a file states claims and is of no experiment that is listed.
    """
    found = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    for name, content in found.items():
        if name not in EXPERIMENTS and isinstance(content, dict) and content.get("claims"):
            raise ValueError(
                f"{name}.json states claims, but {name!r} is not among the EXPERIMENTS of "
                "benchmarks/papers/experiments.py: add it there, or remove the file"
            )
    return {name: found[name] for name in EXPERIMENTS if name in found}


def statements(name: str, content: dict[str, Any]) -> list[Statement]:
    """The claims of one result file."""
    known = reasons(name)
    found = []
    for one in content["claims"]:
        ours = EXPERIMENTS[name].ours or one["claim"].startswith(OURS)
        failed = one["holds"] in ("no", "partly")
        found.append(
            Statement(
                place=one["paper"].split(", ", 1)[-1],
                claim=OURS * ours + one["claim"].removeprefix(OURS),
                measured=one["measured"],
                holds=one["holds"],
                ours=ours,
                reason=known.get(one["claim"], "") if failed else "",
                check=one.get("check", "") if failed else "",
            )
        )
    return found


def by_paper(results: dict[str, dict[str, Any]]) -> dict[str, list[Statement]]:
    """The claims of all result files under the titles of their papers."""
    found: dict[str, list[Statement]] = {}
    for name, content in results.items():
        found.setdefault(paper_of(name), []).extend(statements(name, content))
    return {paper: those for paper, those in found.items() if those}


def count(those: Sequence[Statement]) -> str:
    """How many of the paper's claims hold, checks of ours left out."""
    claims = [one for one in those if not one.ours]
    return f"{sum(one.holds == 'yes' for one in claims)} of {len(claims)} claims hold"


def by_verdict(found: dict[str, list[Statement]], before: dict[str, Any]) -> Iterator[str]:
    """The table at the top: claims of every paper by verdict, before and now, as Markdown."""
    earlier = before["claims"]
    rows: list[list[str]] = []
    sums = dict.fromkeys((*VERDICTS.values(), "all"), (0, 0))
    for paper in PAPERS.values():
        claims = [one for one in found.get(paper, []) if not one.ours]
        counts = {
            word: (earlier[paper][word], sum(one.verdict == word for one in claims))
            for word in VERDICTS.values()
        }
        counts["all"] = (sum(earlier[paper].values()), len(claims))
        rows.append([paper, *(f"{was} → {now}" for was, now in counts.values())])
        for word, (was, now) in counts.items():
            sums[word] = (sums[word][0] + was, sums[word][1] + now)
    rows.append(["**together**", *(f"{was} → {now}" for was, now in sums.values())])
    yield from table(["paper", *VERDICTS.values(), "claims"], rows)
    yield ""


def overview(found: dict[str, list[Statement]], *, measured: bool) -> Iterator[str]:
    """A table per paper, with or without what was measured, as lines of Markdown."""
    header = ["table or figure", "claim", *(["measured"] if measured else []), "verdict"]
    for paper, those in found.items():
        yield f"**{paper}**: {count(those)}.\n"
        rows = [
            [one.place, one.claim, *([one.measured] if measured else []), one.verdict]
            for one in those
        ]
        yield from table(header, [[_escaped(cell) for cell in row] for row in rows], of_text=True)
        yield ""


def exceptions(found: dict[str, list[Statement]], *, measured: bool) -> Iterator[str]:
    """A list per paper of what does not hold, or only partly, and why, as lines of Markdown."""
    for paper, those in found.items():
        failed = [one for one in those if one.holds != "yes"]
        if failed:
            yield f"**{paper}**\n"
            before = ""
            for one in failed:
                why = "as above." if one.reason == before else one.reason
                yield _exception(one, why if one.reason else "", measured)
                before = one.reason
            yield ""


def _exception(one: Statement, why: str, measured: bool) -> str:
    text = f"- {one.place}, {one.verdict}: {one.claim.rstrip('.')}."
    if measured:
        text += f" Seen: {one.measured.rstrip('.')}."
    if why:
        text += f" Why: {why}"
    return f"{text} Check: {one.check.rstrip('.')}." if measured and one.check else text


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
