"""Threads that use one object at the same time, as often as possible; a program of its own.

``python -m tests.estimators.hammer OBJECT COUNT``: every thread calls its method COUNT times, with
the interpreter changing threads all the time. What it prints is JSON: how often each method was
called, the errors, and what the object had learned in the end. A crash is its exit code.
"""

from __future__ import annotations

import copy
import faulthandler
import json
import pickle
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import polymargin
from polymargin import (
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    StreamSolver,
)

N_CLASSES = 6


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few examples of several classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, 60)
    return rng.standard_normal((60, 5)) + 3 * np.eye(N_CLASSES, 5)[y], y


class Hammer:
    """One object, and what threads do with it."""

    def __init__(self, name: str) -> None:
        self.X, self.y = problem()
        if "csr" in name:
            self.X = sparse.csr_array(self.X)
        self.clf, self.trains = OBJECTS[name]()
        self.streams = "partial_fit" in self.trains
        self.most_late = 30 if "stream" in name else 0  # so many classes for one that there is
        # at first the last class is unknown, in order that others meet a class that appears
        known = self.y < N_CLASSES - 1 if self.streams else slice(None)
        getattr(self.clf, self.trains[0])(self.X[known], self.y[known])
        self.n_learned = int(np.sum(known)) if self.streams else 0
        self.lock = threading.Lock()

    def partial_fit(self, rng: np.random.Generator) -> None:
        """Learn a few examples, some of classes that nobody has seen."""
        rows = rng.choice(60, int(rng.integers(1, 20)))
        late = N_CLASSES * rng.integers(0, 1 + self.most_late, len(rows))
        self.clf.partial_fit(self.X[rows], self.y[rows] + late)
        with self.lock:
            self.n_learned += len(rows)

    def fit(self, rng: np.random.Generator) -> None:
        """Train with or without the last classes."""
        rows = rng.permutation(60)
        rows = rows[self.y[rows] < rng.integers(N_CLASSES - 2, N_CLASSES + 1)]
        self.clf.fit(self.X[rows], self.y[rows])

    def predict(self, rng: np.random.Generator) -> None:
        """Labels, scores and the best two."""
        labels = self.clf.predict(self.X)
        assert labels.shape == (60,) and labels.min() >= 0
        assert self.clf.decision_function(self.X).shape[0] == 60
        assert self.clf.predict_top_k(self.X, 2).shape == (60, 2)

    def look(self, rng: np.random.Generator) -> None:
        """Attributes."""
        kernel = ("dual_coef_", "support_vectors_", "n_support_")
        names = kernel if hasattr(self.clf, "support_") else ("coef_", "intercept_")
        for name in (*names, "classes_", "n_iter_"):
            getattr(self.clf, name)

    def copies(self, rng: np.random.Generator) -> None:
        """Pickles and deep copies are whole, and go on by themselves."""
        way: list[Callable[[Any], Any]] = [
            lambda clf: pickle.loads(pickle.dumps(clf)),
            copy.deepcopy,
        ]
        other = way[int(rng.integers(2))](self.clf)
        self._check(other)
        if self.streams:
            rows = rng.choice(60, 10)
            self._check(other.partial_fit(self.X[rows], self.y[rows]))

    def shallow(self, rng: np.random.Generator) -> None:
        """A shallow copy predicts."""
        self._check(copy.copy(self.clf))

    def save(self, rng: np.random.Generator) -> None:
        """A model file can be read again."""
        with tempfile.TemporaryDirectory() as folder:
            polymargin.save(self.clf, Path(folder) / "model.pmz")
            self._check(polymargin.load(Path(folder) / "model.pmz"))

    def _check(self, clf: Any) -> None:
        scores = clf.decision_function(self.X)
        n_classes = len(clf.classes_)
        assert scores.shape == ((60, n_classes) if n_classes > 2 else (60,))
        assert np.isfinite(scores).all()
        labels = clf.predict(self.X)
        assert np.isin(labels, clf.classes_).all()
        if not self.most_late:
            assert np.mean(labels == self.y) > 0.3  # of six classes


def _streams(**settings: Any) -> Callable[[], tuple[Any, list[str]]]:
    return lambda: (
        LinearMulticlassSVC(random_state=0, **settings),
        ["partial_fit", "partial_fit"],
    )


OBJECTS: dict[str, Callable[[], tuple[Any, list[str]]]] = {
    "stream": _streams(stream=StreamSolver(average=True, reservoir=5000)),
    "stream_csr": _streams(loss="one_vs_rest", stream=StreamSolver(reservoir=5000)),
    "stream_and_fit": lambda: (LinearMulticlassSVC(random_state=0), ["partial_fit", "fit"]),
    "larank": lambda: (LaRankClassifier(gamma=0.1, random_state=0), ["partial_fit", "partial_fit"]),
    "larank_csr": lambda: (LaRankClassifier(gamma=0.1, random_state=0), ["partial_fit", "fit"]),
    "linear": lambda: (
        LinearMulticlassSVC(warm_start=True, store_dual=True, probability=True, tol=0.1),
        ["fit", "fit"],
    ),
    "kernel": lambda: (KernelMulticlassSVC(warm_start=True, tol=0.1), ["fit", "fit"]),
    "cv": lambda: (LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, tol=0.1), ["fit", "fit"]),
}


def run(name: str, count: int) -> dict[str, Any]:
    """Let all threads go, and say what happened."""
    hammer = Hammer(name)
    did, errors = Counter[str](), Counter[str]()
    ready = threading.Barrier(len(hammer.trains) + 5)

    def work(method: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        ready.wait()
        for _ in range(count):
            try:
                getattr(hammer, method)(rng)
            except Exception as error:
                errors[f"{method}: {type(error).__name__}: {error}"[:300]] += 1
            did[method] += 1

    methods = [*hammer.trains, "predict", "look", "copies", "shallow", "save"]
    threads = [threading.Thread(target=work, args=(m, i)) for i, m in enumerate(methods)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: dict[str, Any] = {"did": did, "errors": errors}
    if "fit" not in hammer.trains and isinstance(hammer.clf, LinearMulticlassSVC):
        found["learned"] = [int(hammer.clf.n_samples_seen_), hammer.n_learned]
    return found


if __name__ == "__main__":
    faulthandler.enable()
    sys.setswitchinterval(1e-6)
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
