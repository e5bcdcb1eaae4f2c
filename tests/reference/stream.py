"""A stream learned slowly: the restricted problems in rational arithmetic, nothing in batches.

Weights are kept per label in a dict. Each new example: its block from the exact solver, then
``revisits`` examples of the reservoir, drawn by splitmix64. Averages are sums of all iterates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.reference.entropic import ENTROPIC
from tests.reference.restricted import solve_to_floats

UNSEEN = object()  # the class that never appears, with one-vs-rest
MASK = 2**64 - 1


def splitmix(seed: int, n: int) -> int:
    """The n-th number of the sequence."""
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class SlowStream:
    """The same model as ``LinearMulticlassSVC.partial_fit``, without an intercept of its own."""

    def __init__(
        self,
        loss: str,
        top_k: int | None = None,
        *,
        classes: Any = None,
        reservoir: int = 0,
        revisits: int = 1,
        seed: int = 0,
    ) -> None:
        self.loss, self.top_k = loss, top_k
        self.capacity, self.revisits, self.seed = reservoir, revisits, seed
        self.known = [] if classes is None else list(classes)
        if loss.startswith("one_vs_rest") and classes is None:
            self.known = [UNSEEN]
        self.W: dict[Any, np.ndarray] = {}
        self.sums: dict[Any, np.ndarray] = {}
        self.ages: dict[Any, int] = {}
        self.kept: list[list[Any]] = []  # x, y, c, block by label
        self.oldest = self.drawn = 0

    def learn(self, X: np.ndarray, y: Any, c: Any) -> SlowStream:
        """One step per row; the constant feature, if any, is a column of X."""
        for x, label, weight in zip(X, y, c, strict=True):
            if weight > 0:
                self._learn_one(x, label, weight)
        return self

    def average(self, label: Any) -> np.ndarray:
        """The mean of the label's weights over its life."""
        return self.sums[label] / self.ages[label] if self.ages[label] else self.W[label]

    def _learn_one(self, x: np.ndarray, label: Any, weight: float) -> None:
        for name in [*self.known, label]:
            if name not in self.W:
                self._appear(name, np.zeros_like(x))
        new = [x, label, weight, {}]
        self._visit(new)
        if self.capacity and new[3]:
            if len(self.kept) < self.capacity:
                self.kept.append(new)
            else:
                self.kept[self.oldest % self.capacity] = new
                self.oldest += 1
        for _ in range(self.revisits):
            if not self.kept:
                break
            place = splitmix(self.seed, self.drawn) % len(self.kept)
            self.drawn += 1
            self._visit(self.kept[place])
            if not self.kept[place][3]:
                last = self.kept.pop()
                if place < len(self.kept):
                    self.kept[place] = last
        for name in self.W:
            self.sums[name] = self.sums[name] + self.W[name]
            self.ages[name] += 1

    def _appear(self, name: Any, zero: np.ndarray) -> None:
        self.W[name], self.sums[name], self.ages[name] = zero, zero, 0
        if UNSEEN in self.W and name is not UNSEEN:
            for table in (self.W, self.sums, self.ages):
                table[name] = table[UNSEEN]
            for example in self.kept:
                if UNSEEN in example[3]:
                    example[3][name] = example[3][UNSEEN]

    def _visit(self, example: list[Any]) -> None:
        x, label, weight, block = example
        A = float(x @ x)
        if A == 0:
            return
        coupled = not self.loss.startswith("one_vs_rest")
        names = [name for name in self.W if not coupled or name != label]
        if not names:
            return
        own = np.array([block.get(name, 0.0) for name in names])
        scores = np.array([self.W[name] @ x for name in names])
        if coupled:
            h = (self.loss not in ENTROPIC) + scores - self.W[label] @ x
            b = h / A + own + own.sum()
        else:
            sign = np.array([1.0 if name == label else -1.0 for name in names])
            b = (1.0 - sign * scores) / A + own
        k = None if self.top_k is None else min(self.top_k, len(names))
        p = solve_to_floats(self.loss, b, weight, k, A=A)
        for name, value, change in zip(names, p, p - own, strict=True):
            if coupled:
                self.W[name] = self.W[name] - change * x
                self.W[label] = self.W[label] + change * x
            else:
                self.W[name] = self.W[name] + (change if name == label else -change) * x
            block.pop(name, None)
            if value > 0:
                block[name] = value
