"""The mathematics of the Newton phase: maximiser, gradient, Hessian, steps, on small problems."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from polymargin import get_loss
from polymargin.solvers.newton import phase as phases
from polymargin.solvers.newton.faces import FACES, faces_of
from polymargin.solvers.newton.phase import NewtonPhase
from polymargin.solvers.newton.proximal import ProximalDual
from polymargin.solvers.newton.system import Hessian, Preconditioner, conjugate_gradients
from polymargin.solvers.state import State
from tests.reference.objective import dual, dual_infeasibility, primal, signs
from tests.reference.restricted import solve_to_floats
from tests.reference.whole_problem import optimum, random_spec
from tests.solvers.test_whole_problems import LOSSES, SHAPES, as_problem


def flat(cases):
    """Those of the losses that the phase is for."""
    return [case for case in cases if get_loss(*case[:2]).flat]


every_loss = pytest.mark.parametrize(("loss", "top_k", "K"), flat(LOSSES))
every_shape = pytest.mark.parametrize(("loss", "top_k", "K"), flat(SHAPES))


def make_phi(loss, top_k, K, mu=5.0, seed=0):
    """A smooth problem with weights, zero rows and an intercept, a point and a direction."""
    spec = random_spec(loss, top_k, K, weights=True, zero_rows=True, intercept=True, seed=seed)
    phi = ProximalDual(as_problem(spec, "dense"), mu)
    rng = np.random.default_rng(seed + 1)
    somewhere = phi.margins(rng.normal(size=(phi.n, K)))
    phi.move_to(phi.maximiser(somewhere))  # some feasible point with blocks of all kinds
    return phi, rng.normal(size=(phi.d, K)), rng.normal(size=(phi.d, K))


def at(phi, W):
    """Value, gradient and maximiser at W."""
    H = phi.margins(phi.scores(W))
    p = phi.maximiser(H)
    return phi.value(W, H, p), W - phi.weights(p)[0], p


@every_shape
def test_the_maximiser_is_the_restricted_solution_of_every_example(loss, top_k, K):
    phi, W, _ = make_phi(loss, top_k, K)
    X = phi.take(np.arange(phi.n))
    scores = X @ W
    np.testing.assert_allclose(phi.scores(W), scores, atol=1e-12)
    found = at(phi, W)[2]
    for i in range(phi.n):
        q, c = phi.centre[i], phi.c[i]
        if loss == "one_vs_rest":
            h = 1 - signs(phi.y[i : i + 1], K)[0] * scores[i]
            expected = solve_to_floats(loss, h / phi.mu + q, c)
        else:
            wrong = np.arange(K) != phi.y[i]
            h = 1 + scores[i][wrong] - scores[i][phi.y[i]]
            expected = np.zeros(K)
            expected[wrong] = solve_to_floats(loss, h / phi.mu + q[wrong] + q.sum(), c, top_k)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_and_the_hessian_are_derivatives(loss, top_k, K, seed):
    phi, W, D = make_phi(loss, top_k, K, seed=seed)
    step = 1e-6
    up, down = at(phi, W + step * D), at(phi, W - step * D)
    middle = at(phi, W)
    slope = (up[0] - down[0]) / (2 * step)
    assert slope == pytest.approx(np.vdot(middle[1], D), rel=1e-6)
    masks = [faces_of(phi.loss, p, phi.y, phi.c) for _, _, p in (up, down, middle)]
    for one in masks[:2]:  # no kink between them
        np.testing.assert_array_equal(one.rows, masks[2].rows)
        np.testing.assert_array_equal(one.free, masks[2].free)
    assert len(masks[2].rows) >= 4
    change = (up[1] - down[1]) / (2 * step)
    np.testing.assert_allclose(Hessian(phi, masks[2]).times(D), change, rtol=1e-6, atol=1e-6)


@every_shape
def test_faces_are_projectors_with_their_diagonal(loss, top_k, K):
    phi, W, _ = make_phi(loss, top_k, K)
    faces = phi.faces(at(phi, W)[2])
    whole = np.stack([faces.project(np.tile(e, (len(faces.rows), 1))) for e in np.eye(K)], axis=2)
    np.testing.assert_allclose(whole, whole.transpose(0, 2, 1), atol=1e-12)
    np.testing.assert_allclose(whole @ whole, whole, atol=1e-12)
    np.testing.assert_allclose(np.einsum("ijj->ij", whole), faces.diagonal(), atol=1e-12)
    assert (np.trace(whole, axis1=1, axis2=2) > 0.9).all()  # at least one direction
    if phi.loss.coupled:
        np.testing.assert_allclose(whole.sum(axis=1), 0.0, atol=1e-12)


def test_faces_of_top_k_alpha_by_hand():
    phi, _, _ = make_phi("top_k_alpha", 2, 5)
    y, c = np.zeros(4, np.int32), np.full(4, 1.0)
    blocks = [
        [0, 0.2, 0.2, 0, 0],  # U = {1, 2}: they move with the sum
        [0, 0.3, 0.2, 0.1, 0],  # U = {1}, M = {2, 3}
        [0, 0.5, 0.3, 0.2, 0],  # the sum is at its bound: M alone
        [0, 0, 0, 0, 0],
    ]
    faces = faces_of(phi.loss, np.array(blocks), y, c)
    np.testing.assert_array_equal(faces.rows, [0, 1, 2])
    rays = np.array([[2, -1, -1, 0, 0], [2, -1, -0.5, -0.5, 0], [0, 0, 0, 0, 0]])
    lengths = np.sqrt([[6.0], [5.5], [1.0]])
    np.testing.assert_allclose(faces.ray, rays / lengths, atol=1e-12)
    np.testing.assert_array_equal(faces.free, [[0] * 5, [0, 0, 1, 1, 0], [0, 0, 1, 1, 0]])


def test_every_loss_of_the_table_is_covered():
    from polymargin import LOSSES as NAMES

    assert set(FACES) == {name for name in NAMES if get_loss(name, 1).flat}


@every_loss
def test_conjugate_gradients_solve_the_system(loss, top_k, K, monkeypatch):
    monkeypatch.setattr("polymargin.solvers.newton.system.ENOUGH", 0.0)
    monkeypatch.setattr("polymargin.solvers.newton.system.MOST_ITERATIONS", 100)
    phi, W, _ = make_phi(loss, top_k, K)
    W -= W.mean(axis=1, keepdims=True)
    _, g, p = at(phi, W)
    faces = phi.faces(p)
    assert len(faces.rows) >= 4
    hessian = Hessian(phi, faces)
    inverse = Preconditioner(phi, faces.rows, faces.diagonal(), phi.mu)
    D, _ = conjugate_gradients(hessian.times, inverse.apply, g)
    np.testing.assert_allclose(hessian.times(D), -g, atol=1e-7 * np.abs(g).max())
    if phi.loss.coupled:  # no way into directions that H leaves alone
        np.testing.assert_allclose(inverse.apply(g).sum(axis=1), 0.0, atol=1e-12 * np.abs(g).max())
    if loss == "one_vs_rest":  # nothing couples the classes: the preconditioner is the inverse
        np.testing.assert_allclose(inverse.apply(hessian.times(D)), D, atol=1e-9)


def make_phase(spec):
    """The phase after one sweep."""
    problem = as_problem(spec, "dense")
    state = State(problem)
    state.set_method(*problem.loss.check_restricted("auto", None))
    rng = np.random.default_rng(0)
    state.sweep(rng.permutation(problem.visited))
    return NewtonPhase(state, state.W, lambda rows: state.sweep(rng.permutation(rows)))


@cache
def problem_and_optimum(loss, top_k, K, plain):
    more = not plain
    spec = random_spec(loss, top_k, K, weights=more, zero_rows=more, intercept=more)
    return spec, optimum(spec)


@every_shape
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "weights and intercept"])
def test_the_phase_finds_the_optimum(loss, top_k, K, plain):
    spec, best = problem_and_optimum(loss, top_k, K, plain)
    phase = make_phase(spec)
    state = phase._state
    gap, duals = np.inf, []
    for _ in range(300):
        gap = phase.advance().gap
        duals.append(phase._dual)
        if gap <= 1e-9:
            break
    assert gap <= 1e-9
    assert (np.diff(duals) >= 0).all()  # the centre moves up only
    solution = state.split(phase.primal_point)
    assert primal(spec, *solution) == pytest.approx(best, rel=1e-7)
    block = state.dual_block().toarray()
    z = signs(spec.y, spec.K)
    a = z * block if loss == "one_vs_rest" else -block
    if loss != "one_vs_rest":
        a[np.arange(len(a)), spec.y] = block.sum(axis=1)
    assert dual(spec, a) == pytest.approx(best, rel=1e-7)
    assert dual_infeasibility(spec, a) <= 1e-12


@every_loss
def test_phi_falls_with_every_step(loss, top_k, K):
    spec, _ = problem_and_optimum(loss, top_k, K, plain=False)
    phase = make_phase(spec)
    phase.phi.mu *= 1e-3
    phase._accuracy = 1e-12
    values = []
    while phase._steps == len(values) < 20:  # at one centre
        p = phase.phi.maximiser(phase._H)
        values.append(phase.phi.value(phase._W, phase._H, p))
        phase.advance()
    assert len(values) >= 3
    assert (np.diff(values) <= 0).all()


def test_a_centre_that_would_fall_is_kept_and_tried_again_more_accurately():
    spec, _ = problem_and_optimum("crammer_singer", None, 5, plain=True)
    phase = make_phase(spec)
    while not phase.advance().gap <= 1e-6:
        pass
    state, dual_before = phase._state, phase._dual
    phase._sweep = lambda rows: None
    phase._dual = np.inf  # nothing is better
    centre, V, accuracy = phase.phi.centre.copy(), state.W.copy(), phase._accuracy
    while np.isnan(phase.advance().gap):
        pass
    np.testing.assert_array_equal(state.dual_block().toarray(), centre)
    np.testing.assert_array_equal(state.W, V)
    assert phase._dual_value() == pytest.approx(dual_before, rel=1e-12)
    assert phase._accuracy == pytest.approx(0.1 * accuracy)
    for _ in range(50):
        phase.advance()
    assert phase.stalled


def test_the_phase_stalls_where_the_gap_does_not_fall():
    spec, _ = problem_and_optimum("weston_watkins", None, 3, plain=True)
    phase = make_phase(spec)
    assert not phase.stalled
    phase._lower_gap, phase._since = 0.0, phases.CONSTANTS.patience + 1
    assert phase.stalled
