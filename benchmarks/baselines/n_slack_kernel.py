"""The n-slack cutting plane method with kernels, as SVMstruct (Tsochantaridis et al. 2005).

Every example i has a working set S_i of classes, empty at first. A look at an example is one
arg max; with h_m = 1 + s_m - s_y its worst class joins S_i if

    h_worst > max(0, max over S_i of h) + epsilon,

and when `RETRAIN` constraints have come together (algorithm 1 of the paper says one, its authors'
program a hundred) the dual is solved over all working sets,

    max  sum p - 1/2 |W|^2     over  p_im >= 0 for m in S_i,  sum_m p_im <= C,

by exact steps on one example at a time, until complementary slackness is missed by no more than
epsilon anywhere. (The authors' program has SVM-light do that.) It ends with an epoch that adds
nothing.

Members, the examples with a constraint, have their kernel values with each other computed once and
kept, and their scores up to date. To look at any other example takes its kernel values with all
members, which are counted every time, and kept if it becomes a member: LaRank's are counted so.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.baselines.compiled import block_step, compiled
from polymargin.kernel_functions import KernelFunction

RETRAIN = 100
LOOKS = 100  # at examples, between two solutions at least


@compiled
def _sweep(order, G, squares, y, C, epsilon, working, P, S):
    """One pass of exact steps where the conditions are missed; returns how many it made."""
    steps, m = 0, len(order)
    for i in order:
        classes = np.flatnonzero(working[i])
        h = np.empty(len(classes))
        slack, least, mass = 0.0, 0.0, 0.0
        for place in range(len(classes)):
            h[place] = 1.0 + S[classes[place], i] - S[y[i], i]
            slack = max(slack, h[place])
            mass += P[i, classes[place]]
        if mass >= C * (1.0 - 1e-12):
            least = slack
        for place in range(len(classes)):
            if P[i, classes[place]] > 0.0:
                least = min(least, h[place])
        if slack - least <= epsilon:
            continue
        steps += 1
        old = P[i][classes]
        change = block_step(h / squares[i] + old + mass, C) - old
        S[y[i], :m] += change.sum() * G[i, :m]
        for place in range(len(classes)):
            P[i, classes[place]] += change[place]
            if change[place] != 0.0:
                S[classes[place], :m] -= change[place] * G[i, :m]
    return steps


class KernelNSlack:
    """The method as an object: ``epoch()`` looks at every example once.

    Parameters
    ----------
    X : ndarray or csr_array of float32
    y : ndarray of int
    kernel : KernelFunction
    C, epsilon : float
    cache_bytes : int
        For kernel values of the members with each other.
    seconds : float
        CPU time after which ``epoch`` stops where it is, and `stopped` says so.
    seed : int
        Of the order of the examples.

    Attributes
    ----------
    n_kernels, n_argmax, n_steps : int
        Kernel values computed, examples looked at, exact steps made.
    n_coefficients : int
        What is stored of the gradient: |S_i| and the true class, for every member.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        kernel: KernelFunction,
        *,
        C: float,
        epsilon: float = 0.01,
        cache_bytes: float = 500e6,
        seconds: float = np.inf,
        seed: int = 0,
    ) -> None:
        self.X, self.y, self.kernel, self.C, self.epsilon = X, np.asarray(y), kernel, C, epsilon
        n, n_classes = len(self.y), int(self.y.max()) + 1
        self.rng = np.random.default_rng(seed)
        self.deadline = time.process_time() + seconds
        self.stopped = False
        self.squares = kernel.diagonal(X)
        most = min(n, int(np.sqrt(cache_bytes / 4)))
        self.place = np.full(n, -1)  # among the members
        self.members = np.zeros(0, np.int64)
        self.rows = X[:0]  # of the members
        self.G = np.empty((most, most), np.float32)
        self.S = np.zeros((n_classes, most))
        self.P = np.zeros((most, n_classes))
        self.working = np.zeros((most, n_classes), np.bool_)
        self.n_kernels = self.n_argmax = self.n_steps = self.waiting = 0

    def epoch(self) -> int:
        """Look at every example, solve as constraints come; returns how many came."""
        added = 0
        order = self.rng.permutation(len(self.y))
        for rows in np.array_split(order, -(-len(order) // LOOKS)):
            added += self._look(rows)
            if self.waiting >= RETRAIN:
                self._solve()
            if self.stopped:
                break
        if self.waiting:
            self._solve()
        return added

    def _look(self, rows: np.ndarray) -> int:
        """One arg max per example; violated constraints join the working sets."""
        scores, values = self._scores(rows)
        self.n_argmax += len(rows)
        own, at = self.y[rows], np.arange(len(rows))
        h = 1.0 + scores - scores[at, own][:, None]
        h[at, own] = 0.0
        h[self.squares[rows] == 0] = 0.0  # nothing changes an empty row's scores
        known = np.where((self.place[rows] >= 0)[:, None], self.working[self.place[rows]], False)
        slack = np.where(known, h, 0.0).max(axis=1)
        worst = h.argmax(axis=1)
        wrong = h[at, worst] > slack + self.epsilon
        fresh = wrong & (self.place[rows] < 0)
        self._join(rows[fresh], values[fresh[self.place[rows] < 0]], scores[fresh])
        wrong &= self.place[rows] >= 0  # all, unless the cache is full
        self.working[self.place[rows[wrong]], worst[wrong]] = True
        self.waiting += int(wrong.sum())
        return int(wrong.sum())

    def _scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of some examples; the kernel values of those who are no members, counted."""
        scores = np.empty((len(rows), len(self.S)))
        inside = self.place[rows] >= 0
        scores[inside] = self.S[:, self.place[rows[inside]]].T
        values = self.kernel.block(self.X[rows[~inside]], self.rows)
        self.n_kernels += values.size
        scores[~inside] = values @ self.signed_dual().astype(np.float32)
        return scores, values

    def _join(self, new: np.ndarray, values: np.ndarray, scores: np.ndarray) -> None:
        """Take in members, as many as there is room for."""
        m = len(self.members)
        room = len(self.G) - m
        if len(new) > room:
            self.stopped = True
            new, values, scores = new[:room], values[:room], scores[:room]
        if len(new) == 0:
            return
        end = m + len(new)
        self.G[m:end, :m] = values
        self.G[:m, m:end] = values.T
        self.G[m:end, m:end] = self.kernel.block(self.X[new], self.X[new])
        self.n_kernels += len(new) * (len(new) + 1) // 2
        self.S[:, m:end] = scores.T
        self.place[new] = np.arange(m, end)
        self.members = np.concatenate([self.members, new])
        self.rows = self.X[self.members]

    def _solve(self) -> None:
        """The dual over the working sets, to a violation of epsilon."""
        m, steps = len(self.members), 1
        squares, y = self.squares[self.members], self.y[self.members]
        while steps and not self.stopped:
            order = self.rng.permutation(m)
            parts = (self.working[:m], self.P[:m], self.S)
            steps = _sweep(order, self.G, squares, y, self.C, self.epsilon, *parts)
            self.n_steps += steps
            self.stopped = time.process_time() > self.deadline
        self.waiting = 0

    def signed_dual(self) -> np.ndarray:
        """Coefficients of the members, (members, classes)."""
        m = len(self.members)
        signed = -self.P[:m]
        signed[np.arange(m), self.y[self.members]] = self.P[:m].sum(axis=1)
        return signed

    def dual(self) -> float:
        """``sum p - 1/2 |W|^2``; an empty row counts with its constant loss."""
        m = len(self.members)
        squared = float(np.vdot(self.signed_dual(), self.S[:, :m].T))
        return float(self.P[:m].sum()) - 0.5 * squared + self.C * float((self.squares == 0).sum())

    def primal(self) -> float:
        """``1/2 |W|^2 + C sum loss``; its kernel values are not counted."""
        counted, losses = self.n_kernels, 0.0
        for rows in np.array_split(np.arange(len(self.y)), -(-len(self.y) // LOOKS)):
            scores, _ = self._scores(rows)
            own, at = self.y[rows], np.arange(len(rows))
            h = 1.0 + scores - scores[at, own][:, None]
            h[at, own] = 0.0
            losses += float(h.max(axis=1).sum())
        self.n_kernels = counted
        squared = float(np.vdot(self.signed_dual(), self.S[:, : len(self.members)].T))
        return 0.5 * squared + self.C * losses

    @property
    def n_coefficients(self) -> int:
        """Entries of the gradient that the method stores."""
        return int(self.working.sum()) + len(self.members)
