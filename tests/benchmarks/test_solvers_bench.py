"""The benchmark of solvers: each minimises what it says, runs resume, endings are told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.cells import CellStore
from benchmarks.objective import primal
from benchmarks.solvers_bench import memory, problems, tables, worker
from benchmarks.solvers_bench.base import BaseSolver, all_solvers, solver_files
from benchmarks.solvers_bench.objective import OBJECTIVES
from benchmarks.solvers_bench.problems import Problem
from benchmarks.solvers_bench.runner import Limits, Runner, known_cells, start_worker
from benchmarks.solvers_bench.solvers import numpy_sgd

SOLVERS = list(all_solvers())
OPTIONAL = ("snapml", "sklearn-contrib-lightning")  # not in the environment of the tests


@cache
def made() -> datasets.Dataset:
    X, y = datasets.generate_sparse(90, 30, 4, nonzeros=5, dtype=np.float64)
    return datasets.Dataset("made up", X[:60], y[:60], X[60:], y[60:])


@cache
def exact_optimum(loss: str, top_k: int | None, C: float) -> float:
    pytest.importorskip("cvxpy", reason="the oracle needs CVXPY")
    from tests.reference.objective import Spec
    from tests.reference.whole_problem import optimum

    data = made()
    c = np.full(60, C)
    return optimum(Spec(data.X_train.toarray(), data.y_train, c, loss, top_k, 0.0, 4))


@pytest.mark.parametrize("loss", ["top_k_alpha", "top_k_beta", "weston_watkins", "one_vs_rest"])
def test_primals_agree_with_plain_loops(loss):
    rng = np.random.default_rng(0)
    X, y, W = rng.standard_normal((20, 5)), rng.integers(0, 4, 20), rng.standard_normal((4, 5))
    expected = 0.0
    for x, code in zip(X, y, strict=True):
        s = W @ x
        h = sorted((1 + s[j] - s[code] for j in range(4) if j != code), reverse=True)
        expected += {
            "top_k_alpha": max(0.0, (h[0] + h[1]) / 2),
            "top_k_beta": (max(0.0, h[0]) + max(0.0, h[1])) / 2,
            "weston_watkins": sum(max(0.0, value) for value in h),
            "one_vs_rest": sum(max(0.0, 1 - (1 if j == code else -1) * s[j]) for j in range(4)),
        }[loss]
    value = primal(X, y, W, 0.3, loss, top_k=2)
    assert value == pytest.approx(0.5 * (W**2).sum() + 0.3 * expected, rel=1e-12)


def test_an_unknown_objective_is_an_error():
    with pytest.raises(ValueError, match="no objective"):
        primal(np.eye(2), np.array([0, 1]), np.eye(2), 1.0, "hinge")


@pytest.mark.parametrize("label", [solver.label for solver in SOLVERS])
def test_every_solver_minimises_what_it_says(label):
    """At its tightest setting it comes to the optimum a QP solver finds, never below it."""
    (solver,) = [solver for solver in SOLVERS if solver.label == label]
    if find_spec(solver.module.split(".")[0]) is None:
        pytest.skip(f"{solver.package} is absent")
    optima = [
        exact_optimum(OBJECTIVES[name].loss, OBJECTIVES[name].k(4), 0.5)
        if OBJECTIVES[name].has_primal
        else None
        for name in solver.objectives
    ]
    if solver.package not in OPTIONAL:
        check_minimum(label, optima)
        return
    # In a process of its own: importing snapml has the processor flush small numbers to zero.
    code = f"from {__name__} import check_minimum; check_minimum({label!r}, {optima!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check_minimum(label, optima, C=0.5):
    (solver,) = [solver for solver in SOLVERS if solver.label == label]
    assert solver.missing() is None
    data = made()
    for name, best in zip(solver.objectives, optima, strict=True):
        objective = OBJECTIVES[name]
        solver.set_objective(data, C, objective)
        solver.run(solver.grid[-1])
        assert (solver.predict(data.X_train) == data.y_train).mean() > 0.6
        if best is None:
            continue
        value = objective.value(data, np.asarray(solver.get_result()["coef"]), C)
        slack = 0.05 if solver.setting == "epochs" else 2e-3
        assert best * (1 - 1e-6) <= value <= best * (1 + slack)


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta"])
def test_the_hand_written_subgradients_are_those_of_the_losses(loss):
    """Against differences of the loss, at scores where it has a gradient."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_classes = int(rng.integers(4, 9))
        scores, codes = rng.normal(size=(1, n_classes)), rng.integers(n_classes, size=1)

        def value(s, codes=codes):
            return primal(s, codes, np.eye(s.shape[1]), 1.0, loss, 3)

        margins = 1.0 + scores - scores[0, codes]
        found = numpy_sgd.subgradient(margins, codes, loss, 3)[0]
        steps = 1e-6 * np.eye(n_classes)
        expected = [(value(scores + h) - value(scores - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_every_named_peer_has_a_file_and_every_objective_a_solver():
    labels = " ".join(solver.label for solver in SOLVERS)
    for name in (
        "LIBLINEAR -s 4",
        "LIBLINEAR -s 3",
        "LIBLINEAR -s 1",
        "LinearSVC",
        "SGDClassifier",
    ):
        assert name in labels
    for name in ("LogisticRegression", "snapml", "lightning", "NumPy SGD", "SVC", "2 threads"):
        assert name in labels
    assert len({solver.label for solver in SOLVERS}) == len(SOLVERS)
    assert {name for solver in SOLVERS for name in solver.objectives} == set(OBJECTIVES)


def test_the_full_grid_is_the_one_promised():
    full = set(problems.full_problems())
    for data in problems.FULL_DATA:
        for C in (0.01, 0.1, 1.0, 10.0):
            assert Problem(data, C, "crammer_singer") in full
    chosen = problems.select(problems.full_problems(), ["mnist"], [1.0], ["one_vs_rest"])
    assert chosen == [Problem("mnist", 1.0, "one_vs_rest")]
    assert chosen[0].layout == "csr"


def test_peak_memory_sees_what_was_freed():
    if memory.resident_mb() is None:
        pytest.skip("the system does not tell the memory of a process")
    memory.forget_peak()
    before = memory.resident_mb()
    block = np.ones(30_000_000 // 8 * 4)
    del block
    assert memory.peak_mb() - before > 80


class Fake(BaseSolver):
    """Needs no package; its distance to the optimum of 100 is a little below its setting."""

    name, package, module = "fake", "numpy", "numpy"
    objectives = ("crammer_singer",)
    grid = (1e-1, 1e-2, 1e-3, 1e-4)


class Absent(Fake):
    name, package, module = "gone", "nosuch", "nosuch_module"


class Script:
    """Stands for worker processes: tells prepared events, and remembers what it was asked."""

    def __init__(self, endings=None):
        self.asked, self.endings = [], endings or {}

    def __call__(self, spec, patience):
        self.asked.append(spec)
        for job in spec["jobs"]:
            tag = {"solver": job["solver"]}
            if job["solver"] == "reference":
                yield {**tag, "event": "bound", "primal": 100.0, "gap": 0.0, "lower_bound": 100.0}
                continue
            for setting in job["settings"]:
                yield {**tag, "event": "start", "setting": setting}
                if setting in self.endings:
                    yield {**tag, "event": "ended", **self.endings[setting]}
                    break
                cell = {"status": "ok", "cpu": 1.0, "wall": 2.0, "total": 1.0, "accuracy": 0.5}
                primal = 100 * (1 + 0.99 * setting)
                cell |= {"suboptimality": primal / 100 - 1, "primal": primal}
                yield {**tag, "event": "cell", "setting": setting, **cell}
                if setting <= spec["target"]:
                    break


PROBLEM = Problem("digits", 1.0, "crammer_singer")


def run(tmp_path, script, solvers=None, known=None, problems=(PROBLEM,), **kwargs):
    store = CellStore(tmp_path / "cells.jsonl")
    store.take_over(known_cells(known or {}))
    found = Runner(store, Limits(**kwargs), log=lambda text: None, events=script)
    return found.run(problems, solvers or [Fake()])


def test_a_walk_ends_at_the_target_and_resumes_for_nothing(tmp_path):
    script = Script()
    series = run(tmp_path, script)["series"][0]
    assert [cell["setting"] for cell in series["cells"]] == [1e-1, 1e-2, 1e-3]
    assert series["state"] == "reached"
    again = Script()
    assert run(tmp_path, again)["series"][0] == series
    assert again.asked == []


def test_an_interrupted_walk_goes_on_where_it_stopped(tmp_path):
    class Interrupted(Script):
        def __call__(self, spec, patience):
            for number, event in enumerate(super().__call__(spec, patience)):
                if number == 3:
                    raise KeyboardInterrupt
                yield event

    script = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, script)
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write('{"key": {"cut')  # as a process that is ended leaves it
    resumed = Script()
    series = run(tmp_path, resumed)["series"][0]
    assert [job["settings"] for spec in resumed.asked for job in spec["jobs"]] == [
        [1e-2, 1e-3, 1e-4]
    ]
    assert [cell["setting"] for cell in series["cells"]] == [1e-1, 1e-2, 1e-3]


def test_a_changed_solver_or_machine_is_measured_anew(tmp_path, monkeypatch):
    run(tmp_path, Script())
    monkeypatch.setattr(Fake, "version", lambda self: "2")
    script = Script()
    run(tmp_path, script)
    assert len(script.asked) == 1  # the bound is known
    machine = {"cpu": "another", "cores": 64}
    monkeypatch.setattr("benchmarks.provenance.machine", lambda: machine)
    script = Script()
    run(tmp_path, script)
    assert len(script.asked) == 1


def test_a_timeout_is_told_and_tried_again_with_more_time(tmp_path):
    series = run(tmp_path, Script({1e-2: {"status": "timeout"}}), run=5.0)["series"][0]
    assert series["state"] == "timeout"
    assert [cell["status"] for cell in series["cells"]] == ["ok", "timeout"]
    assert run(tmp_path, Script(), run=5.0)["series"][0]["state"] == "timeout"
    assert run(tmp_path, Script(), run=50.0)["series"][0]["state"] == "reached"


def test_what_is_too_slow_is_not_tried_with_a_larger_C(tmp_path):
    slow = Script({1e-1: {"status": "timeout"}})
    problems = [Problem("digits", C, "crammer_singer") for C in (0.1, 10.0, 0.01)]
    results = run(tmp_path, slow, problems=problems, run=5.0)["series"]
    assert [series["state"] for series in results] == ["timeout", "skipped", "timeout"]
    assert results[1]["cells"] == [results[0]["cells"][0] | {"status": "skipped", "since": 0.1}]
    asked = [spec["C"] for spec in slow.asked if spec["jobs"][0]["solver"] == "fake"]
    assert asked == [0.1, 0.01]
    results = run(tmp_path, Script(), problems=problems, run=50.0)["series"]
    assert {series["state"] for series in results} == {"reached"}


@pytest.mark.parametrize(("late", "then"), [(1e-2, "skipped"), (1e-3, "timeout")])
def test_who_came_near_is_tried_with_a_larger_C(tmp_path, late, then):
    slow = Script({late: {"status": "timeout"}})
    problems = [Problem("digits", C, "crammer_singer") for C in (0.1, 10.0)]
    results = run(tmp_path, slow, problems=problems, run=5.0)["series"]
    assert [series["state"] for series in results] == ["timeout", then]


def test_what_was_not_tried_is_told_from_a_store_alone(tmp_path):
    problems = [Problem("digits", C, "crammer_singer") for C in (0.1, 10.0)]

    class Costly(Script):
        def __call__(self, spec, patience):
            for event in super().__call__(spec, patience):
                yield event | {"total": 9.0}
                if event["event"] == "cell":
                    return

    measured = run(tmp_path, Costly(), problems=problems, budget=5.0)["series"]
    assert [series["state"] for series in measured] == ["over budget", "skipped"]
    known = Runner(CellStore(tmp_path / "cells.jsonl"), only_known=True, log=lambda text: None)
    assert known.run(problems, [Fake()])["series"] == measured[:1]  # nobody was tried on the other

    class Other(Fake):
        name = "other"

    run(tmp_path, Script(), [Other()], problems=problems[1:])
    known = Runner(CellStore(tmp_path / "cells.jsonl"), only_known=True, log=lambda text: None)
    found = known.run(problems, [Fake(), Other()])["series"]
    assert [series["state"] for series in found] == ["over budget", "skipped", "reached"]


def test_distances_follow_a_better_bound(tmp_path):
    run(tmp_path, Script())
    store = CellStore(tmp_path / "cells.jsonl")
    ((key, bound),) = [(key, value) for key, value in store if key["solver"] == "reference"]
    store.put(key, bound | {"lower_bound": 100.5})
    known = Runner(store, only_known=True, log=lambda text: None)
    cells = known.run([PROBLEM], [Fake()])["series"][0]["cells"]
    distances = [cell["suboptimality"] for cell in cells]
    assert distances == pytest.approx([109.9 / 100.5 - 1, 100.99 / 100.5 - 1, 100.099 / 100.5 - 1])


def test_a_result_file_counts_as_measured(tmp_path):
    endings = {1e-2: {"status": "timeout"}}
    first = run(tmp_path / "a", Script(endings), run=5.0)
    script = Script()
    again = run(tmp_path / "b", script, known=tables.compact(first), run=5.0)
    assert script.asked == []
    assert tables.compact(again) == tables.compact(first)
    script = Script()
    longer = run(tmp_path / "b", script, known=first, run=50.0)["series"][0]
    assert [job["settings"][0] for spec in script.asked for job in spec["jobs"]] == [1e-2]
    assert [cell["limit"] for cell in longer["cells"]] == [5.0, 50.0, 50.0]


def test_epochs_that_would_take_too_long_are_not_begun():
    class Epochs(Fake):
        setting, grid = "epochs", (1, 3, 10)

    def after(cpu, setting, budget, limit):
        cell = {"setting": setting, "cpu": cpu, "total": cpu}
        return worker.exhausted([cell], Epochs(), budget, limit)

    assert not after(1.0, 1, budget=5.0, limit=5.0)  # three take three seconds, four are left
    assert after(1.0, 1, budget=3.5, limit=5.0)
    assert after(2.0, 1, budget=100.0, limit=5.0)
    assert not after(4.0, 10, budget=4.0, limit=5.0)
    assert not worker.exhausted([], Epochs(), 1.0, 1.0)
    assert not worker.exhausted([{"setting": 1e-1, "cpu": 3.0, "total": 3.0}], Fake(), 4.0, 4.0)
    assert worker.exhausted([{"setting": 1e-1, "cpu": 3.0, "total": 9.0}], Fake(), 4.0, 4.0)


def test_errors_budgets_and_absences_are_told(tmp_path):
    endings = {1e-1: {"status": "error", "error": "no"}}
    results = run(tmp_path / "a", Script(endings), [Fake(), Absent()])
    assert results["series"][0]["state"] == "error"
    assert "nosuch" in results["absent"]["gone"]
    assert [series["solver"] for series in results["series"]] == ["fake"]

    class Thrifty(Script):
        def __call__(self, spec, patience):
            for event in super().__call__(spec, patience):
                last = event.get("setting") == 1e-2 and event["event"] == "cell"
                yield event
                if last:
                    return

    series = run(tmp_path / "b", Thrifty(), budget=1.5)["series"][0]
    assert series["state"] == "over budget"

    def absent(spec, patience):
        yield {"event": "absent", "reason": "no such file"}

    assert run(tmp_path / "c", absent)["absent_data"] == {"digits": "no such file"}


def test_an_error_is_tried_again(tmp_path):
    endings = {1e-1: {"status": "error", "error": "no"}}
    assert run(tmp_path, Script(endings))["series"][0]["state"] == "error"
    assert run(tmp_path, Script())["series"][0]["state"] == "reached"


def test_a_figure_depends_on_the_files_of_its_solver():
    (first,) = [solver for solver in SOLVERS if solver.label == "LIBLINEAR -s 4"]
    names = [path.name for path in solver_files(first)]
    assert names == ["liblinear_s4.py", "liblinear.py", "base.py"]


def test_a_worker_that_is_ended_leaves_the_other_solvers_to_the_next(tmp_path):
    class Other(Fake):
        name = "other"

    class Dies(Script):
        def __call__(self, spec, patience):
            yield from super().__call__({**spec, "jobs": spec["jobs"][:1]}, patience)
            if spec["jobs"][0]["solver"] == "fake":
                yield {"event": "ended", "status": "timeout"}

    results = run(tmp_path, Dies({1e-1: {"status": "timeout"}}), [Fake(), Other()])
    states = {series["solver"]: series["state"] for series in results["series"]}
    assert states["fake"] == "timeout"
    assert states["other"] in ("reached", "timeout")


def test_only_known_measures_nothing(tmp_path):
    def never(spec, patience):
        raise AssertionError("measured")

    store = CellStore(tmp_path / "cells.jsonl")
    known = Runner(store, only_known=True, log=lambda text: None, events=never)
    assert known.run([PROBLEM], [Fake()])["series"] == []


SPEC = {"data": "digits", "layout": "native", "C": 0.01, "objective": "crammer_singer"}


def test_a_real_worker_measures_and_a_limit_ends_it(tmp_path):
    label = "polymargin [float64, 1 thread]"
    job = {"solver": label, "settings": [1e-1, 1e-2], "budget": 60.0}
    slow = {"solver": "NumPy SGD", "settings": [100_000], "budget": 60.0}
    spec = SPEC | {"optimum": 1.0, "target": -1.0, "limit": 1.0, "jobs": [slow, job]}
    events = list(start_worker(spec, patience=120.0))
    ended = [event for event in events if event["event"] == "ended"]
    assert [event["status"] for event in ended][-1] == "ok"
    cells = [event for event in events if event["event"] == "cell"]
    assert [cell["setting"] for cell in cells] == [1e-1, 1e-2]
    assert cells[-1]["gap"] <= 1e-2
    assert cells[-1]["accuracy"] > 0.8
    if worker.CAN_FORK:
        assert ended[0] == {"event": "ended", "solver": "NumPy SGD", "status": "timeout"}


def test_a_silent_worker_is_ended(tmp_path):
    job = {"solver": "NumPy SGD", "settings": [100_000], "budget": 60.0}
    spec = SPEC | {"optimum": 1.0, "target": 0.0, "limit": 1000.0, "jobs": [job]}
    start = time.monotonic()
    events = list(start_worker(spec, patience=8.0))
    assert events[-1] == {"event": "ended", "status": "timeout"}
    assert time.monotonic() - start > 7


def test_very_short_runs_are_timed_several_in_a_row(monkeypatch):
    class Ticking(Fake):
        runs = 0

        def run(self, setting):
            Ticking.runs += 1

        def get_result(self):
            return {"coef": np.zeros((4, 30))}

    # the clock stands still for most calls: 1 ms a run, told in steps of 20 ms
    monkeypatch.setattr(worker.time, "process_time", lambda: Ticking.runs // 20 * 20e-3)
    solver = Ticking()
    solver.set_objective(made(), 1.0, OBJECTIVES["crammer_singer"])
    spec = {"C": 1.0, "optimum": 60.0}
    cell = worker.run(solver, 1.0, made(), OBJECTIVES["crammer_singer"], spec)
    assert cell["cpu"] == pytest.approx(1e-3, rel=0.2)
    assert cell["suboptimality"] == pytest.approx(0.0)  # the loss of 60 examples at zero


def test_a_worker_reports_absent_data_and_broken_solvers(monkeypatch, capsys):
    class Broken(Fake):
        variants: ClassVar = {}

        def run(self, setting):
            raise MemoryError("too large")

    monkeypatch.setattr(worker, "all_solvers", lambda: [Broken()])
    spec = SPEC | {"optimum": 1.0, "target": 0.0, "limit": 60.0}
    job = {"solver": "fake", "settings": [1.0, 0.1], "budget": 60.0}
    events = list(worker.work(job, made(), spec))
    assert [event["event"] for event in events] == ["start", "cell"]
    assert events[1]["error"] == "MemoryError: too large"
    monkeypatch.setattr(worker.sys, "argv", ["worker", json.dumps(spec | {"data": "clinc150"})])
    monkeypatch.setattr(
        datasets, "load", lambda *a, **k: (_ for _ in ()).throw(FileNotFoundError("x"))
    )
    assert worker.main() == 0
    assert json.loads(capsys.readouterr().out)["event"] == "absent"
