"""The page of `benchmarks.streams`: tables from its results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

WANTED = "a loss of ours above every SGD on all three"


def markdown(results: dict[str, Any]) -> str:
    """All tables there are results for."""
    parts = ["# Streams: one pass of `partial_fit`", results["machine"]]
    if "passes" in results:
        parts += [_passes(results["passes"]), _verdict(results["passes"])]
    if "splits" in results:
        parts.append(_splits(results["splits"]))
    if "blondel" in results:
        found = results["blondel"]
        parts.append(
            "## Blondel et al. 2014, table II: one pass on news20\n\nTen stratified splits of 4/5 "
            f"and 1/5, C = 1, no intercept: {found['plain']:.2f} ± {found['plain ±']:.2f} % "
            f"(averaged weights {found['averaged']:.2f} ± {found['averaged ±']:.2f} %). The paper "
            "has 83.51 ± 1.04 (Sort) and 83.85 ± 0.87 % (Pivot), on its version of the data; ours "
            "is LIBSVM's."
        )
    if "gains" in results:
        parts.append(_gains(results["gains"]))
    if "batches" in results:
        parts.append(_batches(results["batches"]))
    if "memory" in results:
        parts.append(_memory(results["memory"]))
    return "\n\n".join(parts) + "\n"


def _table(header: str, rows: Sequence[str]) -> str:
    columns = header.count("|") - 1
    return "\n".join([header, "|" + "---|" + "--:|" * (columns - 1), *rows])


def _passes(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        grid = " (end of the grid)" if _at_an_end(row) else ""
        lines.append(
            f"| {row['data']}: {row['classifier']} | {row['examples']:,} | {row['value']:g}{grid} "
            f"| {row['accuracy']:.2f}{_deviation(row)} | {row['per_second']:,.0f} |"
        )
    text = (
        "## After one pass\n\nTest accuracy in %, mean and deviation of five random orders "
        "(aloi: one), no intercept on the texts; the reservoir has 1,000 examples and one "
        "revisit; `C`, `alpha` or `eta0` chosen from seven values on held-out rows.\n\n"
    )
    return text + _table("| data: classifier | examples | chosen | accuracy | examples/s |", lines)


def _deviation(row: dict[str, Any]) -> str:
    return "" if row["deviation"] is None else f" ± {row['deviation']:.2f}"


def _at_an_end(row: dict[str, Any]) -> bool:
    scores = row["validation"]
    return scores.index(max(scores)) in (0, len(scores) - 1)


def _verdict(rows: Sequence[dict[str, Any]]) -> str:
    """Of each side the one that the held-out rows choose, and the one that the test rows would."""
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows):
        sides = [
            [r for r in rows if r["data"] == name and r["classifier"].startswith("SGD") == theirs]
            for theirs in (False, True)
        ]
        chosen = _compared([max(side, key=lambda r: max(r["validation"])) for side in sides])
        best = _compared([max(side, key=lambda r: r["accuracy"]) for side in sides])
        lines.append(f"- {name}: {chosen}; the best on the test rows: {best}.")
    head = f"What held-out rows choose of each side (wanted: {WANTED}):\n\n"
    return head + "\n".join(lines)


def _compared(pair: Sequence[dict[str, Any]]) -> str:
    margin = pair[0]["accuracy"] - pair[1]["accuracy"]
    texts = [f"{row['classifier']} {row['accuracy']:.2f}" for row in pair]
    return f"{texts[0]} against {texts[1]}, {margin:+.2f} points"


def _splits(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        cells = [row["data"]]
        for side in ("ours", "SGD"):
            values, names = row["accuracies"][side], row["winners"][side]
            times = ", ".join(f"{n} x {names.count(n)}" for n in dict.fromkeys(names))
            cells.append(f"{mean(values):.2f} ± {stdev(values):.2f}")
            cells.append(times)
        lines.append("| " + " | ".join([*cells, f"{row['p']:.2g}"]) + " |")
    text = (
        "## The same on other splits\n\nStratified splits of 4/5 and 1/5 of all rows; in each, "
        "value and classifier are chosen on held-out rows of the training part. Test accuracy in "
        "%, how often each was chosen, and Wilcoxon's p-value.\n\n"
    )
    return text + _table("| data | ours | chosen | SGD | chosen | p |", lines)


def _gains(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"| {row['data']}: {row['settings']} | {row['C']:g} | "
        f"{row['accuracy']:.2f}{_deviation(row)} | {row['seconds']:.2f} |"
        for row in rows
    ]
    head = "## What averages, a reservoir and further passes buy (Crammer-Singer)\n\n"
    return head + _table("| data: settings | C | accuracy | CPU s |", lines)


def _batches(rows: Sequence[dict[str, Any]]) -> str:
    names = [name for name in rows[0] if name != "size"]
    lines = [
        f"| {row['size']:,} | " + " | ".join(f"{row[name]:,.0f}" for name in names) + " |"
        for row in rows
    ]
    head = "## Examples per CPU second on news20, by the size of the batches\n\n"
    return head + _table("| batch | " + " | ".join(names) + " |", lines)


def _memory(found: dict[str, Any]) -> str:
    lines = [f"| {int(mark):,} | {gb:.3f} |" for mark, gb in found["peak_gb"].items()]
    table = _table("| examples | peak memory of the process, GB |", lines)
    return (
        f"## Memory: {found['examples']:,} generated examples, 200 classes, one more after nine "
        f"tenths\n\n{table}\n\nLearned at {found['per_second']:,.0f} examples/s. Accuracy on fresh "
        f"examples {100 * found['accuracy_before']:.1f} % before the late class appeared, "
        f"{100 * found['accuracy']:.1f} % of all {found['classes']} classes at the end; of "
        f"the late class itself {100 * found['late_recall']:.0f} % are recognised, and "
        f"{100 * found['late_precision']:.0f} % of its predictions are right."
    )
