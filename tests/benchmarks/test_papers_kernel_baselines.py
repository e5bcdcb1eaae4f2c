"""Kernel machines that the LaRank paper compares with: they solve what they say, and count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.baselines.kernel_online import KernelMira, KernelPerceptron
from benchmarks.baselines.mira import Mira
from benchmarks.baselines.n_slack_kernel import KernelNSlack
from polymargin import KernelMulticlassSVC
from polymargin.kernel_functions import KernelFunction

C = 2.0
RBF = KernelFunction("rbf", gamma=0.3)


class Counting(KernelFunction):
    """A kernel that adds up the values it has computed."""

    computed = 0

    def block(self, A, B, *others):
        self.computed += A.shape[0] * B.shape[0]
        return super().block(A, B, *others)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    X = rng.standard_normal((120, 6)) + 1.2 * np.eye(4, 6)[y]
    X[7] = 0.0
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def optimum(data):
    clf = KernelMulticlassSVC(kernel="rbf", gamma=0.3, C=C, tol=1e-6, random_state=0).fit(*data)
    return clf.dual_objective_


def to_the_end(machine, epochs=100):
    for _ in range(epochs):
        if machine.epoch() == 0:
            return machine
    raise AssertionError("still adding constraints")


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 1e-4])
def test_n_slack_ends_around_the_kernel_optimum(data, optimum, epsilon):
    machine = to_the_end(KernelNSlack(*data, RBF, C=C, epsilon=epsilon))
    assert machine.dual() <= optimum * (1 + 1e-5) <= machine.primal() * (1 + 2e-5)
    # a margin is missed by epsilon beyond a slack, and a slack by epsilon: on every example
    assert machine.primal() - machine.dual() <= 2 * epsilon * C * len(data[1]) + 1e-3
    assert machine.dual() >= optimum - 2 * epsilon * C * len(data[1]) - 1e-3
    assert (machine.P >= 0).all() and (machine.P.sum(axis=1) <= C * (1 + 1e-9)).all()
    assert not machine.P[~machine.working].any()
    assert not machine.stopped


def test_n_slack_with_a_linear_kernel_and_sparse_rows(data):
    X, y = sparse.csr_array(data[0][:40]), data[1][:40]
    exact = KernelMulticlassSVC(kernel="linear", C=0.5, tol=1e-6, random_state=0).fit(X, y)
    machine = to_the_end(KernelNSlack(X, y, KernelFunction("linear"), C=0.5, epsilon=1e-3))
    assert machine.dual() == pytest.approx(exact.dual_objective_, rel=1e-3)
    assert machine.place[7] == -1  # an empty row has nothing to say


def test_n_slack_keeps_scores_and_coefficients_together(data):
    X, y = data
    machine = KernelNSlack(X, y, RBF, C=C)
    for _ in range(3):
        machine.epoch()
        m = len(machine.members)
        K = RBF.block(X, X[machine.members])
        scores = K @ machine.signed_dual()
        np.testing.assert_allclose(machine.S[:, :m].T, scores[machine.members], atol=1e-4)
        own = scores[np.arange(len(y)), y][:, None]
        h = np.where(np.eye(4, dtype=bool)[y], 0, 1 + scores - own)
        squared = np.vdot(machine.signed_dual(), scores[machine.members])
        assert machine.dual() == pytest.approx(machine.P.sum() - squared / 2, rel=1e-4)
        primal = squared / 2 + C * h.max(axis=1).sum()
        assert machine.primal() == pytest.approx(primal, rel=1e-4)


def test_n_slack_counts_what_it_computes(data):
    kernel = Counting("rbf", gamma=0.3)
    machine = KernelNSlack(*data, kernel, C=C)
    epochs, sizes = 0, [0]
    while machine.epoch():
        epochs += 1
        sizes.append(len(machine.members))
    epochs += 1
    assert machine.n_argmax == epochs * len(data[1])
    # what is computed, but for one half of the products of new members with each other
    assert 0.6 * kernel.computed < machine.n_kernels <= kernel.computed
    m = len(machine.members)
    outside = len(data[1]) - m
    assert machine.n_kernels >= m * (m + 1) // 2 + outside * sum(sizes[:-1])
    assert m < machine.n_coefficients == m + machine.working.sum() < machine.working.size
    before = machine.n_kernels
    machine.primal()
    assert machine.n_kernels == before


def test_n_slack_looks_at_members_for_nothing():
    """All are members after the first epoch here: nothing is computed any more."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((50, 3)).astype(np.float32), np.arange(50) % 2
    machine = KernelNSlack(X, y, RBF, C=C, epsilon=1e-3)
    machine.epoch()
    assert len(machine.members) == 50 and machine.n_kernels == 50 * 51 // 2
    machine.epoch()
    assert machine.n_kernels == 50 * 51 // 2


def test_n_slack_stops_at_its_limits(data):
    machine = KernelNSlack(*data, RBF, C=C, seconds=0.0)
    machine.epoch()
    assert machine.stopped
    small = KernelNSlack(*data, RBF, C=C, cache_bytes=4 * 30**2)
    small.epoch()
    assert small.stopped and len(small.members) == 30
    assert small.dual() <= small.primal()


def test_kernel_mira_is_mira():
    """With the linear kernel it does what the version with weights does, example for example."""
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = (rng.standard_normal((60, 5)) + np.eye(3, 5)[y]).astype(np.float32)
    machine = KernelMira(X, y, KernelFunction("linear"))
    weights = Mira(X, y)
    order = rng.permutation(60)
    machine.rng = weights.rows.rng = type("", (), {"permutation": staticmethod(lambda _: order)})
    for _ in range(2):
        machine.epoch()
        weights.epoch()
    m = len(machine.support)
    np.testing.assert_allclose(machine.beta[:, :m] @ machine.rows[:m], weights.W.T, atol=1e-4)
    average = machine.beta[:, :m] - machine.sums[:, :m] / (machine.n_argmax + 1)
    t = machine.n_argmax  # one average is of t machines, the other has that of zeros besides
    np.testing.assert_allclose(average @ machine.rows[:m], weights.coef * t / (t + 1), atol=1e-4)


def test_online_machines_count_pairs_once(data):
    X, y = data
    for make in (KernelPerceptron, KernelMira):
        machine = make(X, y, RBF)
        pairs = set()
        change = machine._change

        def note(i, scores, machine=machine, pairs=pairs, change=change):
            pairs.update((i, j) for j in machine.support)
            return change(i, scores)

        machine._change = note
        for _ in range(3):
            machine.epoch()
        assert machine.n_kernels == len(pairs)
        assert machine.n_argmax == 3 * len(y)


def test_mira_has_more_support_patterns_than_the_perceptron(data):
    machines = [make(*data, RBF) for make in (KernelPerceptron, KernelMira)]
    for machine in machines:
        machine.epoch()
    assert len(machines[0].support) < len(machines[1].support)
    assert machines[1].error(*data) < 40
