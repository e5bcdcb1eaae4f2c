"""The speed picture and the figures of README.md, from the result files.

    python -m benchmarks.headline [--results FOLDER] [--readme FILE] [--images FOLDER]

Two comparisons, each among solvers of one objective: Crammer-Singer beside LIBLINEAR and LinearSVC
(`solvers_full.json`), softmax beside LogisticRegression with the fastest of its solvers
(`softmax.json`). Which data sets appear is up to the files: those in `KINDS` that were measured.
The text goes between two markers of README.md; the pictures carry the numbers they show.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.papers.common import markdown_table
from benchmarks.provenance import ROOT
from benchmarks.reference_optima import read_json
from benchmarks.solvers_bench import tables

RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- figures: begin (make results) -->", "<!-- figures: end -->"
TARGET = 1e-3
C = 1.0
KINDS = {
    "news20": "text",
    "rcv1_multiclass_sub": "text",
    "clinc150": "text",
    "usps": "images",
    "mnist": "images",
    "banking77_minilm": "embeddings",
    "clinc150_minilm": "embeddings",
}
OURS = "polymargin"
CRAMMER_SINGER = "Crammer-Singer SVM"
SOFTMAX = "multinomial logistic regression"
PEERS = {  # how the result file calls them
    "LIBLINEAR": "LIBLINEAR -s 4",
    "LinearSVC": "LinearSVC crammer_singer",
}
LOGISTIC = "LogisticRegression"
COUNTED = ("crammer_singer", "one_vs_rest")  # of the sentence on all problems
MARKERS = {OURS: "o", "LIBLINEAR": "s", "LinearSVC": "D", LOGISTIC: "^"}
LIGHT = {"text": "#1f2328", "faint": "#c9ced6", OURS: "#0b6bcb"}
DARK = {"text": "#e6edf3", "faint": "#454c56", OURS: "#58a6ff"}
PEER_COLORS = {"LIBLINEAR": "#d9822b", "LinearSVC": "#c0487f", LOGISTIC: "#3f9e5b"}


@dataclass(frozen=True)
class Line:
    """One data set and objective: CPU seconds to the target by solver; None: not reached."""

    objective: str
    kind: str
    data: str
    seconds: dict[str, float | None]

    @property
    def ratio(self) -> float | None:
        """The best peer's time over ours."""
        peers = [t for name, t in self.seconds.items() if name != OURS and t is not None]
        ours = self.seconds[OURS]
        return min(peers) / ours if peers and ours is not None else None


def lines(results: Path) -> list[Line]:
    """What the picture shows, in its order."""
    full, softmax = read_json(results / "solvers_full.json"), read_json(results / "softmax.json")
    found = []
    groups = tables.by_problem(full) if full else {}
    for data, kind in KINDS.items():
        group = groups.get((data, C, "crammer_singer"))
        if group is not None:
            seconds = {OURS: tables.our_time(group, TARGET)}
            for name, called in PEERS.items():
                series = tables.find(group, called)
                seconds[name] = tables.seconds_to(series, TARGET) if series else None
            found.append(Line(CRAMMER_SINGER, kind, data, seconds))
    for data, kind in KINDS.items():
        row = (softmax or {}).get("rows", {}).get(f"softmax {data} {C:g}")
        if row is not None and "seconds" in row:
            times = {name: one["seconds"] for name, one in row["seconds"].items()}
            ours = times.pop(OURS)
            found.append(
                Line(SOFTMAX, kind, data, {OURS: ours, LOGISTIC: min(times.values(), default=None)})
            )
    return found


def draw(shown: Sequence[Line], palette: dict[str, str]) -> Figure:
    """A panel per objective, a row per data set, a point per solver."""
    objectives = list(dict.fromkeys(line.objective for line in shown))
    counts = [sum(line.objective == one for line in shown) for one in objectives]
    figure = Figure(figsize=(8.6, 1.4 + 0.4 * max(counts, default=1)), layout="constrained")
    figure.patch.set_alpha(0)
    panels = figure.subplots(1, len(objectives), squeeze=False, sharex=True)[0]
    for panel, objective in zip(panels, objectives, strict=True):
        _panel(panel, [line for line in shown if line.objective == objective], palette)
        panel.set_title(objective, fontsize=10, color=palette["text"], loc="left")
    handles = {
        line.get_label(): line
        for panel in panels
        for line in panel.lines
        if not str(line.get_label()).startswith("_")
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        labelcolor=palette["text"],
    )
    figure.supxlabel(
        "CPU seconds to 0.1 % of the optimum, one thread; beside: best peer / polymargin",
        fontsize=9,
        color=palette["text"],
    )
    return figure


def _panel(panel: Axes, shown: Sequence[Line], palette: dict[str, str]) -> None:
    panel.patch.set_alpha(0)
    panel.set_xscale("log")
    colors = PEER_COLORS | {OURS: palette[OURS]}
    for place, line in enumerate(shown):
        times = {name: t for name, t in line.seconds.items() if t is not None}
        panel.plot(
            [min(times.values()), max(times.values())],
            [place, place],
            color=palette["faint"],
            linewidth=2,
            zorder=1,
        )
        for name, seconds in times.items():
            panel.plot(
                seconds,
                place,
                MARKERS[name],
                color=colors[name],
                markersize=8 if name == OURS else 6.5,
                linestyle="none",
                label=name if place == 0 else None,
            )
        if line.ratio is not None:
            panel.annotate(
                f"{line.ratio:.1f}x",
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=9,
                color=palette["text"],
            )
    names = [f"{line.data.removesuffix('_multiclass_sub')}\n{line.kind}" for line in shown]
    panel.set_yticks(range(len(shown)), names, fontsize=8)
    panel.set_ylim(len(shown) - 0.5, -0.5)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(colors=palette["text"], which="both", length=0, labelsize=8)
    panel.grid(axis="x", color=palette["faint"], linewidth=0.5)
    panel.set_axisbelow(True)
    panel.spines[:].set_visible(False)


def save_pictures(shown: Sequence[Line], folder: Path) -> None:
    """Write the picture for light and for dark pages; what it shows is in its description."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None, "Creator": None, "Description": described(shown)}
    with matplotlib.rc_context({"svg.hashsalt": "polymargin"}):
        for name, palette in (("light", LIGHT), ("dark", DARK)):
            path = folder / f"speed_{name}.svg"
            draw(shown, palette).savefig(path, transparent=True, metadata=metadata)
            text = "\n".join(one.rstrip() for one in path.read_text().splitlines())
            path.write_text(text + "\n")


def described(shown: Sequence[Line]) -> str:
    """The numbers of the picture, as text."""
    return json.dumps([asdict(line) for line in shown])


def block(results: Path) -> str:
    """The part of README.md that comes from the files."""
    full, softmax = read_json(results / "solvers_full.json"), read_json(results / "softmax.json")
    shown = lines(results)
    peers = [name for name in (*PEERS, LOGISTIC) if any(name in line.seconds for line in shown)]
    rows = [
        [
            f"{line.data} ({line.kind})",
            line.objective,
            *(_cell(line, name) for name in (*peers, OURS)),
            f"{line.ratio:.1f}x" if line.ratio is not None else "",
        ]
        for line in shown
    ]
    parts = [
        "<details><summary>The figures</summary>\n",
        markdown_table(["data", "objective, C = 1", *peers, OURS, "best peer / ours"], rows),
        f"{_origin(full, softmax)}\n",
        "</details>\n",
        *_grid(full),
        *_smooth(softmax),
        *_probes(read_json(results / "embeddings.json")),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _cell(line: Line, name: str) -> str:
    if name not in line.seconds:
        return ""
    seconds = line.seconds[name]
    return "not reached" if seconds is None else f"{seconds:.3g}"


def _origin(full: dict[str, Any], softmax: dict[str, Any]) -> str:
    dates = sorted(
        {
            *(cell["date"] for one in full["series"] for cell in one["cells"] if "date" in cell),
            *(row["provenance"]["date"] for row in softmax["rows"].values() if "provenance" in row),
        }
    )
    machine = full["machine"]
    versions = full["versions"]
    return (
        f"CPU seconds until the objective is within 0.1 % of the optimum, certificates included, "
        f"at the best of a grid of tolerances (ours for softmax: at its default); one thread, "
        f"float64 (embeddings: float32), without "
        f"intercept; measured {dates[0]} to {dates[-1]} on {machine['cpu']}, "
        f"{machine['cores']} cores, with scikit-learn {versions['scikit-learn']} and LIBLINEAR "
        f"{versions['liblinear-official']}. LogisticRegression runs with the fastest of its "
        f"solvers. [All results](docs/benchmarks.md)."
    )


def _grid(full: dict[str, Any]) -> Iterator[str]:
    """How often it is first over data sets and values of C, and by how much."""
    groups = {k: g for k, g in tables.by_problem(full).items() if k[2] in COUNTED}
    ratios, alone, first, solved = [], 0, 0, 0
    for group in groups.values():
        ours, best = tables.our_time(group, TARGET), tables.best_peer(group, TARGET)
        solved += ours is not None or best is not None
        if ours is None:
            continue
        alone += best is None
        first += best is None or ours <= best[1]
        if best is not None:
            ratios.append(best[1] / ours)
    data, values = len({key[0] for key in groups}), len({key[1] for key in groups})
    peers = {"LIBLINEAR", "LinearSVC", "SGDClassifier", "snapml", "lightning"}
    yield (
        f"Over {data} data sets and {values} values of `C`, Crammer-Singer and "
        f"one-vs-rest, it is first in {first} of the {solved} problems that any solver brought "
        f"within 0.1 % of the optimum: {min(ratios):.1f} to {max(ratios):.0f} times as fast as the "
        f"best of {', '.join(sorted(peers))} (median {statistics.median(ratios):.1f}); "
        f"{alone} of them no peer solved. Our defaults were tuned on some of these data.\n"
    )


def _smooth(softmax: dict[str, Any]) -> Iterator[str]:
    """The same for softmax, and where it is not first."""
    ratios = {}
    for row in softmax.get("rows", {}).values():
        if row["loss"] == "softmax" and "seconds" in row:
            times = {name: one["seconds"] for name, one in row["seconds"].items()}
            ours = times.pop(OURS)
            if times:
                ratios[f"{row['data']} at C = {row['C']:g}"] = min(times.values()) / ours
    if not ratios:
        return
    behind = [name for name, ratio in ratios.items() if ratio < 1]
    low, high = min(ratios.values()), max(ratios.values())
    text = (
        f'With `loss="softmax"` it is first in {len(ratios) - len(behind)} of {len(ratios)} '
        f"problems beside LogisticRegression with the fastest of its solvers, {low:.1f} to "
        f"{high:.0f} times as fast (median {statistics.median(ratios.values()):.1f})"
    )
    yield text + (f"; behind on {', '.join(behind)}.\n" if behind else ".\n")


def _probes(embeddings: dict[str, Any]) -> Iterator[str]:
    """Linear probes at the best C of each model, by cross-validation."""
    rows = (embeddings or {}).get("rows", [])
    by_data: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_data.setdefault(row["data"], {})[row["model"]] = row
    texts = []
    for data, models in by_data.items():
        ours, peer = models.get(OURS), models.get(LOGISTIC)
        if ours and peer:
            texts.append(
                f"{data} {ours['fit']:.2g} s and {100 * ours['accuracy']:.1f} % against "
                f"{peer['fit']:.2g} s and {100 * peer['accuracy']:.1f} %"
            )
    if texts:
        yield (
            "As a linear probe on embeddings, each at the `C` that cross-validation chose, "
            f"beside LogisticRegression: {'; '.join(texts)}.\n"
        )


def with_block(readme: str, text: str) -> str:
    """README.md with what stands between the markers replaced."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md needs the lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write pictures and figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--readme", type=Path, default=README, help="the file with the markers")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args(argv)
    save_pictures(lines(options.results), options.images)
    text = options.readme.read_text(encoding="utf-8")
    options.readme.write_text(with_block(text, block(options.results)), encoding="utf-8")
    print(f"wrote {options.readme} and {options.images}/speed_*.svg")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
