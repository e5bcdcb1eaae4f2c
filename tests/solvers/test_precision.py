"""Sweeps in single precision on data in double: certificates are those of the data as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import DualSolver, Problem, get_loss
from polymargin.solvers import Checkpoint
from polymargin.solvers.engines.linear import LinearEngine
from polymargin.solvers.precision import starts_in_single
from tests.reference.objective import Spec, dual, dual_infeasibility, primal
from tests.reference.whole_problem import optimum, random_spec

LOSSES = [
    ("crammer_singer", None),
    ("weston_watkins", None),
    ("top_k_beta", 2),
    ("one_vs_rest", None),
    ("one_vs_rest_squared", None),
    ("softmax", None),
]
every_loss = pytest.mark.parametrize(("loss", "top_k"), LOSSES)
SINGLE = DualSolver(precision="single", newton=False)
TIGHT = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}


def as_problem(spec: Spec, layout: str = "dense") -> Problem:
    X = sparse.csr_array(spec.X) if layout == "csr" else np.ascontiguousarray(spec.X)
    loss = get_loss(spec.loss, spec.top_k, spec.smoothing)
    return Problem(X, spec.y, spec.c, loss, spec.K, spec.intercept_scaling)


def assert_certificate_is_true(spec: Spec, solution, tol: float) -> None:
    P, D = primal(spec, solution.coef, solution.intercept), dual(spec, solution.dual_coef())
    assert solution.coef.dtype == np.float64
    assert solution.primal == pytest.approx(P, rel=1e-10)
    assert solution.dual == pytest.approx(D, rel=1e-10)
    assert dual_infeasibility(spec, solution.dual_coef()) <= 1e-12
    gap = (P - D) / P
    assert gap <= tol + 1e-12


@pytest.fixture
def precisions(monkeypatch):
    """Whether each pass was made in single precision."""
    seen = []
    advance = LinearEngine.advance

    def watched(self, *arguments):
        result = advance(self, *arguments)
        seen.append(self.state.dtype == np.float32)
        return result

    monkeypatch.setattr(LinearEngine, "advance", watched)
    return seen


@every_loss
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True], ids=["linear", "intercept"])
def test_certificates_are_those_of_the_data(loss, top_k, layout, intercept, precisions):
    spec = random_spec(loss, top_k, 4, weights=True, zero_rows=True, intercept=intercept)
    solution = SINGLE.solve(as_problem(spec, layout), tol=1e-2, random_state=0)
    assert all(precisions)
    assert solution.status == "converged"
    assert_certificate_is_true(spec, solution, 1e-2)


@every_loss
def test_tight_tolerances_are_reached_in_double(loss, top_k, precisions):
    spec = random_spec(loss, top_k, 4, weights=True, intercept=True)
    solution = SINGLE.solve(as_problem(spec), **TIGHT)
    assert precisions[0] and not precisions[-1]
    assert precisions == sorted(precisions, reverse=True)  # and never back
    assert_certificate_is_true(spec, solution, 1e-9)
    assert solution.primal == pytest.approx(optimum(spec), rel=1e-6)


@pytest.mark.parametrize("acceleration", [False, 1.0])
def test_every_C_of_a_path(acceleration):
    spec = random_spec("crammer_singer", None, 4, weights=True)
    solver = replace(SINGLE, acceleration=acceleration)
    Cs = [0.1, 1.0, 10.0]
    for tol in (1e-3, 1e-7):
        found = solver.solve_path(as_problem(spec), Cs, tol=tol, max_iter=100_000, random_state=0)
        for C, solution in zip(Cs, found, strict=True):
            assert_certificate_is_true(replace(spec, c=C * spec.c), solution, tol)


def test_warm_starts():
    spec = random_spec("weston_watkins", None, 4, weights=True)
    first = SINGLE.solve(as_problem(spec), tol=1e-3, random_state=0)
    again = SINGLE.solve(as_problem(spec), tol=1e-3, random_state=0, start=first)
    assert again.n_iter < first.n_iter
    assert_certificate_is_true(spec, again, 1e-3)


@pytest.mark.parametrize("passes", [1, 3, 30])
def test_a_run_goes_on_from_its_checkpoint(passes, tmp_path):
    """Before and after the change of precision."""
    spec = random_spec("crammer_singer", None, 4, weights=True)
    pb = as_problem(spec)
    whole = SINGLE.solve(pb, **TIGHT)
    assert whole.n_iter > passes
    save = Checkpoint(tmp_path / "run", passes=1)
    SINGLE.solve(pb, **(TIGHT | {"max_iter": passes}), checkpoint=save)
    rest = SINGLE.solve(pb, **TIGHT, checkpoint=save)
    assert rest.n_iter == whole.n_iter
    assert np.array_equal(rest.coef, whole.coef)


def test_values_beyond_single_precision_stay_in_double(precisions):
    spec = random_spec("crammer_singer", None, 3)
    for factor in (1e-25, 1e25):
        scaled = replace(spec, X=spec.X * factor, c=spec.c / factor**2)
        solution = SINGLE.solve(as_problem(scaled), tol=1e-3, random_state=0)
        assert_certificate_is_true(scaled, solution, 1e-3)
    assert not any(precisions)


def test_features_that_single_precision_cannot_tell_apart(precisions):
    """A large constant hides what differs: the gap is not what sweeps take it for."""
    spec = random_spec("crammer_singer", None, 3)
    shifted = replace(spec, X=spec.X + 1e7)
    solution = SINGLE.solve(as_problem(shifted), tol=1e-3, max_iter=3000, random_state=0)
    P, D = primal(shifted, solution.coef, solution.intercept), dual(shifted, solution.dual_coef())
    assert solution.primal == pytest.approx(P, rel=1e-6)
    assert solution.dual == pytest.approx(D, rel=1e-6)
    assert not precisions[-1]


def test_chosen_where_it_pays():
    loss, four = get_loss("crammer_singer"), np.arange(4, dtype=np.int32)
    few = Problem(np.ones((4, 3)), four, np.ones(4), loss, 4)
    assert not starts_in_single(few, DualSolver())
    assert starts_in_single(few, SINGLE)
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 9_000), density=0.01, format="csr", rng=rng)
    y = np.arange(300, dtype=np.int32) % 10
    many = Problem(X, y, np.ones(300), loss, 10)
    assert starts_in_single(many, DualSolver())
    assert not starts_in_single(many, DualSolver(precision="double"))
    for excluded in (DualSolver(schedule="sdm"), DualSolver(certify=False)):
        assert not starts_in_single(many, excluded)
    alpha = Problem(X, y, np.ones(300), get_loss("top_k_alpha", 2), 10)
    assert not starts_in_single(alpha, SINGLE)
    single = Problem(X.astype(np.float32), y, np.ones(300), loss, 10)
    assert not starts_in_single(single, SINGLE)


def test_bad_settings():
    spec = random_spec("crammer_singer", None, 3)
    with pytest.raises(ValueError, match='precision must be "auto", "single" or "double"'):
        DualSolver(precision="half").solve(as_problem(spec))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins", "one_vs_rest"])
def test_the_best_multiple_of_the_primal_point_is_certified(loss, precision):
    """After few passes W is too short: lengthened, it is worth more, and that is what is given."""
    spec = random_spec(loss, None, 4)
    spec = replace(spec, c=20 * spec.c)
    engine = LinearEngine(
        as_problem(spec),
        DualSolver(precision=precision, newton=False),
        np.random.default_rng(0),
        n_jobs=1,
        max_iter=100,
    )
    engine.start(None)
    longer = 0
    for _ in range(12):
        engine.advance(0.0, lambda: False)
        found = engine.certify()
        factor = engine._shown.factor
        model = engine.model(copy=True)
        coef, intercept = engine.state.split(model.weights)
        assert found.primal == pytest.approx(primal(spec, coef, intercept), rel=1e-10)
        as_it_is = primal(spec, *engine.state.split(model.weights / factor))
        assert found.primal <= as_it_is * (1 + 1e-12)
        longer += factor > 1
    assert longer >= 3
