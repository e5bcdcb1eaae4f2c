"""Tables from the results: seconds to each target, polymargin beside LIBLINEAR and the best peer.

Nothing is measured here. A time is the fastest run of a solver that got there: CPU seconds, for
variants with several threads wall-clock seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.solvers_bench.objective import OBJECTIVES, TARGETS

Series = dict[str, Any]
Problem = tuple[str, float, str]
OURS = "polymargin [float64, 1 thread]"
OURS_SINGLE = "polymargin [float32, 1 thread]"
STEADY = 1e-3  # an accuracy that differs by no more is the same
COMPARISONS = ("LIBLINEAR / polymargin", "best peer / polymargin")
BASELINE = {"crammer_singer": "LIBLINEAR -s 4", "one_vs_rest": "LIBLINEAR -s 3"}


def page(content: dict[str, Any]) -> str:
    """Write all tables of a result file as Markdown."""
    return "\n".join([absences(content), ratios(content), details(content), accuracies(content)])


def compact(results: dict[str, Any]) -> dict[str, Any]:
    """Round the figures, and of the histories keep the number of certificates."""

    def shorten(cell: dict[str, Any]) -> dict[str, Any]:
        kept = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in cell.items()
            if name != "history"
        }
        if "history" in cell:
            kept["certificates"] = len(cell["history"]["gap"])
        return kept

    series = [one | {"cells": [shorten(c) for c in one["cells"]]} for one in results["series"]]
    return results | {"series": series}


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a result file: a line per run."""
    heading = {name: value for name, value in content.items() if name != "series"}
    lines = []
    for series in content["series"]:
        cells = ",\n  ".join(json.dumps(cell) for cell in series["cells"])
        rest = json.dumps({name: value for name, value in series.items() if name != "cells"})
        lines.append(f'{rest[:-1]}, "cells": [\n  {cells}]}}')
    start = json.dumps(heading, indent=1)[:-2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{start},\n "series": [\n' + ",\n".join(lines) + "\n ]\n}\n")


def seconds(series: Series, cell: dict[str, Any]) -> float:
    """The time of a run: CPU, or wall clock with several threads."""
    return float(cell["wall" if series["threads"] > 1 else "cpu"])


def seconds_to(series: Series, target: float) -> float | None:
    """The time of the fastest run within `target` of the optimum, None where none got there."""
    there = [
        seconds(series, cell)
        for cell in series["cells"]
        if cell.get("suboptimality") is not None and cell["suboptimality"] <= target
    ]
    return min(there, default=None)


def by_problem(content: dict[str, Any]) -> dict[Problem, list[Series]]:
    """Group the series; data sets and C in the order of the run."""
    groups: dict[Problem, list[Series]] = {}
    for series in content["series"]:
        key = (series["data"], series["C"], series["objective"])
        groups.setdefault(key, []).append(series)
    return groups


def find(group: Sequence[Series], solver: str) -> Series | None:
    """The series of one solver."""
    return next((series for series in group if series["solver"] == solver), None)


def absences(content: dict[str, Any]) -> str:
    """Name what could not be run, and why."""
    lines = [
        f"- absent: {name}: {reason}"
        for kind in ("absent", "absent_data")
        for name, reason in content[kind].items()
    ]
    return "\n".join([*lines, ""]) if lines else ""


def best_peer(group: Sequence[Series], target: float) -> tuple[str, float] | None:
    """The fastest solver that is not ours."""
    times = [
        (time, series["solver"])
        for series in group
        if not series["ours"] and (time := seconds_to(series, target)) is not None
    ]
    return (min(times)[1], min(times)[0]) if times else None


def ratios(content: dict[str, Any], target: float = 1e-3) -> str:
    """Compare polymargin with the best peer, a row per problem; where it is not first, say why."""
    lines: list[str] = []
    for objective in OBJECTIVES:
        groups = {key: group for key, group in by_problem(content).items() if key[2] == objective}
        peers = sorted({s["solver"] for g in groups.values() for s in g if not s["ours"]})
        if not peers or not OBJECTIVES[objective].has_primal:
            continue
        lines += [f"**{OBJECTIVES[objective].text}**, seconds to {target:g} of the optimum", ""]
        header = ["data", "C", "polymargin", "float32", *peers, *COMPARISONS]
        rows = [ratio_row(key, group, peers, target) for key, group in groups.items()]
        lines += table(header, rows)
        notes = [text for key, g in groups.items() if (text := explanation(key, g, target))]
        lines += ["", verdict(groups, target), "", *notes, ""]
    return "\n".join(lines)


def ratio_row(
    key: Problem, group: Sequence[Series], peers: Sequence[str], target: float
) -> list[str]:
    """One row of `ratios`."""
    cells = [outcome(find(group, name), target) for name in (OURS, OURS_SINGLE, *peers)]
    mine, best = our_time(group, target), best_peer(group, target)
    baseline = find(group, BASELINE.get(key[2], ""))
    theirs = seconds_to(baseline, target) if baseline else None
    single = find(group, OURS_SINGLE)
    if mine is None and best is None:
        alone = single is not None and seconds_to(single, target) is not None
        last = "only float32 got there" if alone else "nobody got there"
    elif mine is None:
        last = "(not first)"
    elif best is None:
        last = "no peer got there"
    else:
        last = _times(best[1], mine) + ("" if best[1] >= mine else " (not first)")
    if any(series["state"] == "unfinished" for series in group if not series["ours"]):
        last += ", a peer unfinished"
    ratio = "" if mine is None or theirs is None else _times(theirs, mine)
    return [key[0], f"{key[1]:g}", *cells, ratio, last]


def our_time(group: Sequence[Series], target: float) -> float | None:
    """The seconds of polymargin in float64 on one thread, None where it did not get there."""
    ours = find(group, OURS)
    return seconds_to(ours, target) if ours else None


def verdict(groups: dict[Problem, list[Series]], target: float) -> str:
    """Count in how many problems polymargin is first."""
    times = [(our_time(group, target), best_peer(group, target)) for group in groups.values()]
    solved = [(mine, best) for mine, best in times if mine is not None or best is not None]
    first = sum(mine is not None and (best is None or mine <= best[1]) for mine, best in solved)
    text = f"polymargin (float64, one thread) is first in {first} of {len(solved)} problems"
    nobody = len(times) - len(solved)
    return text + (
        f"; {nobody} more neither it nor a peer solved within the limits." if nobody else "."
    )


def explanation(key: Problem, group: Sequence[Series], target: float) -> str:
    """Say, from the measured runs, why polymargin is not first; empty where it is."""
    ours, best = find(group, OURS), best_peer(group, target)
    mine = our_time(group, target)
    if ours is None or (mine is not None and (best is None or best[1] >= mine)):
        return ""
    text = f"- {key[0]} C={key[1]:g}: "
    if mine is None:
        return text + _closest(group, best)
    assert best is not None
    cell = next(c for c in ours["cells"] if c.get("cpu") == mine)
    text += (
        f"{best[0]} needs {_time(best[1])} s, polymargin {_time(mine)} s "
        f"in {cell['passes']} passes at {ours['setting']}={cell['setting']:g}, "
        f"{cell['certificates']} certificates included."
    )
    earlier = [c for c in ours["cells"] if "cpu" in c and c["setting"] > cell["setting"]]
    if earlier and earlier[-1]["suboptimality"] is not None:
        previous = earlier[-1]
        text += (
            f" The next looser setting ended {previous['suboptimality']:.1e} above after "
            f"{_time(previous['cpu'])} s."
        )
    single = find(group, OURS_SINGLE)
    other = seconds_to(single, target) if single else None
    if other is not None and other <= best[1]:
        text += f" In float32 it is first ({_time(other)} s)."
    if mine - best[1] < 0.05:
        text += " The difference is under 50 ms, where the costs of a call count."
    return text


def _closest(group: Sequence[Series], best: tuple[str, float] | None) -> str:
    """Say who came how close within the limits, where polymargin did not get there."""
    reached = []
    for series in group:
        runs = [c for c in series["cells"] if c.get("suboptimality") is not None]
        if runs and series["threads"] == 1:
            cell = min(runs, key=lambda c: c["suboptimality"])
            reached.append((cell["suboptimality"], series["solver"], seconds(series, cell)))
    texts = [f"{name} {distance:.1e} ({_time(used)} s)" for distance, name, used in sorted(reached)]
    start = "no peer got there" if best is None else f"{best[0]} needs {_time(best[1])} s"
    loose = group[0]["reference"]["gap"]
    return (
        f"{start}; distances from the bound on the optimum, itself known to {loose:.0e}, in runs "
        f"that ended within the limits: {', '.join(texts) or 'none'}."
    )


def details(content: dict[str, Any]) -> str:
    """Seconds to both targets, ratio to LIBLINEAR, accuracy and memory, a row per solver."""
    lines: list[str] = []
    for key, group in by_problem(content).items():
        if not OBJECTIVES[key[2]].has_primal:
            continue
        gap = group[0]["reference"]["gap"]
        lines += [f"**{key[0]}, C = {key[1]:g}, {key[2]}** (optimum known to {gap:.0e})", ""]
        header = ["solver", *(f"s to {t:g}" for t in TARGETS), "LIBLINEAR / solver"]
        header += ["certified gap", "test accuracy %", "memory MB"]
        lines += [*table(header, [detail_row(series, group, key) for series in group]), ""]
    return "\n".join(lines)


def detail_row(series: Series, group: Sequence[Series], key: Problem) -> list[str]:
    """One row of `details`."""
    peer = find(group, BASELINE.get(key[2], ""))
    theirs = seconds_to(peer, min(TARGETS)) if peer else None
    mine = seconds_to(series, min(TARGETS))
    last = last_run(series)
    gap = last.get("gap")
    return [
        series["solver"],
        *(outcome(series, target) for target in TARGETS),
        f"{theirs / mine:.2f}" if theirs is not None and mine is not None else "",
        "" if gap is None else f"{gap:.1e}",
        _percent(last),
        _memory(last),
    ]


def accuracies(content: dict[str, Any]) -> str:
    """Solvers of other objectives: time and accuracy at every setting."""
    lines: list[str] = []
    for key, group in by_problem(content).items():
        if OBJECTIVES[key[2]].has_primal:
            continue
        lines += [f"**{key[0]}, C = {key[1]:g}, {OBJECTIVES[key[2]].text}**", ""]
        rows = []
        for series in group:
            for cell in series["cells"]:
                time = _time(seconds(series, cell)) if "cpu" in cell else cell["status"]
                note = "" if cell["status"] == "ok" else cell["status"]
                setting = f"{series['setting']}={cell['setting']:g}"
                rows.append([series["solver"], setting, time, _percent(cell), _memory(cell), note])
        header = ["solver", "setting", "seconds", "test accuracy %", "memory MB", ""]
        lines += [*table(header, rows), ""]
    return "\n".join(lines)


def other_losses(content: dict[str, Any]) -> str:
    """What a user of other losses gets: the steady accuracy and the seconds to it, beside ours.

    Our columns come first, Crammer-Singer and one-vs-rest of the same data and C.
    """
    groups = by_problem(content)
    others = [s for s in content["series"] if not OBJECTIVES[s["objective"]].has_primal]
    others = [s for s in others if s["objective"] != "rbf_kernel"]
    names = sorted({s["solver"] for s in others})
    rows = []
    for data, C in dict.fromkeys((s["data"], s["C"]) for s in others):
        ours = [find(groups.get((data, C, name), []), OURS) for name in BASELINE]
        here = [s for s in others if (s["data"], s["C"]) == (data, C)]
        rows.append([data, f"{C:g}", *map(steady, [*ours, *(find(here, n) for n in names)])])
    if not rows:
        return ""
    header = ["data", "C", *(f"polymargin {name}" for name in BASELINE), *names]
    title = (
        "**Other losses**: test accuracy of the tightest run that ended, % (seconds of the fastest "
        f"run within {100 * STEADY:g} points of it)"
    )
    return "\n".join([title, "", *table(header, rows), ""])


def steady(series: Series | None) -> str:
    """Accuracy of the tightest run and the seconds of the fastest one that comes close to it."""
    ended = [cell for cell in series["cells"] if "cpu" in cell] if series else []
    if series is None or not ended:
        return outcome(series, min(TARGETS))
    last = ended[-1]["accuracy"]
    close = [seconds(series, cell) for cell in ended if cell["accuracy"] >= last - STEADY]
    return f"{100 * last:.2f} ({_time(min(close))})"


def outcome(series: Series | None, target: float) -> str:
    """The seconds to a target, or in words why there are none."""
    if series is None:
        return "not run"
    found = seconds_to(series, target)
    if found is not None:
        return _time(found)
    last = series["cells"][-1] if series["cells"] else {}
    if series["state"] == "timeout":
        return f"over {last['limit']:g} s"
    if series["state"] == "skipped":
        return f"not tried (over {last['limit']:g} s at C = {last['since']:g})"
    if series["state"] == "error":
        return "error: " + last["error"].replace("|", "/")
    closest = [c["suboptimality"] for c in series["cells"] if c.get("suboptimality") is not None]
    unended = ("over budget", "unfinished")
    reason = series["state"] if series["state"] in unended else "not reached"
    return f"{reason} ({min(closest):.0e})" if closest else reason


def last_run(series: Series) -> dict[str, Any]:
    """The tightest run that ended by itself; empty where none did."""
    ended = [cell for cell in series["cells"] if "cpu" in cell]
    return ended[-1] if ended else {}


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, of_text: bool = False
) -> list[str]:
    """Lines of a Markdown table; all but the first column aligned right, unless it is of text."""
    rule = "|---" if of_text else "|--:"
    lines = ["| " + " | ".join(header) + " |", "|---" + rule * (len(header) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def coverage(content: dict[str, Any]) -> Iterator[str]:
    """Say how much of the plan was run, and what was not, by objective."""
    done = {f"{data} C={C:g} {objective}" for data, C, objective in by_problem(content)}
    left = [problem for problem in content["planned"] if problem not in done]
    planned = len(content["planned"])
    yield f"{planned - len(left)} of {planned} problems were run."
    missing: dict[str, dict[str, list[str]]] = {}
    for problem in left:
        data, C, objective = problem.split(" ")
        missing.setdefault(objective, {}).setdefault(data, []).append(C.removeprefix("C="))
    for objective, by_data in missing.items():
        texts = [f"{data} (C = {', '.join(values)})" for data, values in by_data.items()]
        yield f"- {objective}, not run: {', '.join(texts)}."


def _time(value: float) -> str:
    return f"{value:.3g}"


def _times(other: float, mine: float) -> str:
    return f"{other / max(mine, 1e-9):.1f}x"


def _percent(cell: dict[str, Any]) -> str:
    return f"{100 * cell['accuracy']:.2f}" if "accuracy" in cell else ""


def _memory(cell: dict[str, Any]) -> str:
    value = cell.get("memory_mb")
    return "" if value is None else f"{value:.0f}"
