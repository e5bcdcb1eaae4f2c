"""Stopping rules: each stops where it says, and the papers' rule means what the papers say."""

from __future__ import annotations

import numpy as np
import pytest

from polymargin import DualSolver, LinearMulticlassSVC, Problem, get_loss
from polymargin.solvers import CertifiedGap, LargestViolation, Status
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.engines.base import Engine, Seen
from polymargin.solvers.run import Clock, Run
from polymargin.solvers.stopping import CertifiedDifference, Look, MostPasses, MostSeconds

WITH_VIOLATION = ("crammer_singer", "weston_watkins", "one_vs_rest")
C = 0.5


def make_problem(name, n=120, d=8, n_classes=5):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n).astype(np.int32)
    X = rng.standard_normal((n, d)) + 1.5 * np.eye(n_classes, d)[y]
    return Problem(X, y, np.full(n, C), get_loss(name, 2), n_classes)


def violations(problem, solution):
    """Keerthi et al. (2008), equations 6 and 18, spelled out for every example."""
    a = solution.dual_coef().toarray()
    scores = problem.X @ (problem.X.T @ a)
    found = []
    for s, row, y in zip(scores, a, problem.y, strict=True):
        wrong = np.arange(len(s)) != y
        if problem.loss.name == "one_vs_rest":
            p, h = np.abs(row), 1.0 - np.where(wrong, -1.0, 1.0) * s
        else:
            p, h = -row[wrong], 1.0 + s[wrong] - s[y]
        if problem.loss.name == "crammer_singer":
            gradient = np.append(h, 0.0)  # that of the true class, whose variable is C - sum p
            inside = np.append(p, C - p.sum()) > 1e-12
            found.append(max(gradient.max() - gradient[inside].min(), 0.0))
        else:
            up, down = np.where(p < C - 1e-12, h, 0.0), np.where(p > 1e-12, -h, 0.0)
            found.append(max(up.max(), down.max(), 0.0))
    return np.array(found)


@pytest.mark.parametrize("schedule", ["auto", "sdm"])
@pytest.mark.parametrize("name", WITH_VIOLATION)
def test_the_largest_violation_is_what_it_says(name, schedule):
    problem = make_problem(name)
    worst = []
    for eps in (0.3, 1e-4):
        solver = DualSolver(stopping=LargestViolation(eps), schedule=schedule)
        found = solver.solve(problem, max_iter=20_000, random_state=0)
        assert found.status is Status.CONVERGED
        worst.append(violations(problem, found).max())
        # a visit looks before later ones move the weights again
        assert worst[-1] <= 5 * eps
        assert np.isfinite(found.gap)
    assert worst[1] < worst[0]


def test_a_tight_violation_is_a_small_gap_and_takes_more_passes():
    problem = make_problem("crammer_singer")
    passes, gaps = [], []
    for eps in (1e-1, 1e-3, 1e-5):
        solver = DualSolver(stopping=LargestViolation(eps))
        found = solver.solve(problem, max_iter=20_000, random_state=0)
        passes.append(found.n_iter)
        gaps.append(found.gap)
    assert passes == sorted(passes) and passes[0] < passes[-1]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


def test_the_rule_is_refused_where_it_means_nothing():
    rule = LargestViolation(1e-3)
    with pytest.raises(ValueError, match="no violation"):
        DualSolver(stopping=rule).solve(make_problem("top_k_beta"))
    with pytest.raises(ValueError, match="outer loop"):
        DualSolver(stopping=rule, acceleration=True).solve(make_problem("crammer_singer"))
    with pytest.raises(ValueError, match="StoppingRule"):
        DualSolver(stopping=1e-3).solve(make_problem("crammer_singer"))
    with pytest.raises(ValueError, match="eps"):
        LargestViolation(0.0)


def test_estimators_take_the_rule():
    problem = make_problem("crammer_singer")
    solver = DualSolver(stopping=LargestViolation(1e-4))
    model = LinearMulticlassSVC(C=C, solver=solver, random_state=0).fit(problem.X, problem.y)
    assert model.dual_gap_ < 1e-3


def test_rules_look_at_what_they_are_for():
    good, bad = Certificate(100.0, 99.95), Certificate(100.0, 90.0)
    assert CertifiedGap(1e-3).met(Look(certificate=good))
    assert not CertifiedGap(1e-3).met(Look(certificate=bad))
    assert not CertifiedGap(1e-3).met(Look(certificate=None))
    assert not CertifiedGap(1e-3).met(Look(certificate=Certificate(np.nan, 1.0)))
    assert CertifiedGap(1e-3).goal(good) == pytest.approx(0.1)
    assert CertifiedDifference(0.1).met(Look(certificate=good))
    assert not CertifiedDifference(0.01).met(Look(certificate=good))
    assert MostPasses(3).met(Look(n_iter=3)) and not MostPasses(3).met(Look(n_iter=2))
    assert MostSeconds(1.0).met(Look(seconds=1.0)) and not MostSeconds(1.0).met(Look(seconds=0.5))
    assert not MostSeconds(None).met(Look(seconds=1e9))
    seen_some = Look(violation=0.0, everyone=False)
    assert not LargestViolation(1.0).met(seen_some)
    assert LargestViolation(1.0).must_see_everyone(seen_some)


class Told(Engine):
    """An engine that sees what it is told; after a pass, the gap is what the next one will see."""

    last_is_best = True

    def __init__(self, gaps, visited, kind):
        self.gaps, self.visited, self.kind, self.at, self.certified = gaps, visited, kind, 0, []

    def advance(self, goal, out_of_time):
        self.at += 1
        return Seen(self.visited[self.at - 1], self.gaps[self.at - 1], kind=self.kind)

    def certify(self):
        self.certified.append(self.at)
        return Certificate(1.0, 1.0 - self.gaps[self.at])

    def model(self, *, copy):
        return None


@pytest.mark.parametrize(
    ("gaps", "visited", "kind", "passes"),
    [
        ([0.5, 1e-2, 2e-4, 4e-6], (10, 9, 9), "smooth", [2]),  # as it falls, the next sees 2e-4
        ([0.5, 1e-2, 2e-4, 4e-6], (10, 4, 9), "smooth", [3]),  # few were looked at
        ([0.5, 0.25, 0.125, 2.2e-3, 2e-5], (10,) * 4, "smooth", [4]),  # not before it falls so fast
        ([0.5, 0.25, 0.125, 0.06, 2.2e-3, 1e-5], (10,) * 5, "smooth", [5]),
        # what a Crammer-Singer fit saw, and what its certificates found was 0.85 of the next
        ([0.5, 1.33e-2, 3.05e-3, 1.32e-3, 9e-4, 6e-4], (10,) * 5, "full", [4]),
        ([0.5, 1.33e-2, 3.05e-3, 1.32e-3, 9e-4, 6e-4], (10, 10, 4, 10, 10), "full", [4]),
    ],
)
def test_a_certificate_is_tried_when_the_gap_falls_so_fast_that_it_may_be_there(
    gaps, visited, kind, passes
):
    engine = Told(gaps, visited, kind)
    settings = {"max_iter": 9, "time_limit": None, "certify": True, "tol": 1e-3}
    run = Run(engine, CertifiedGap(1e-3), clock=Clock(), **settings)
    run.loop()
    assert run.status is Status.CONVERGED and engine.certified == passes
