"""Writes the model files of format 1 in ``data/format1``, which must load for ever.

They were made by commit 58d4acb, the last one before model files and checkpoints shared a
container. To make them again, check that commit out beside this one, build it, and from here run

    PYTHONPATH=<that checkout>/src python tests/models/make_format1.py

which writes a file per model, and ``expected.npz``: the rows, and what each model says of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import polymargin
from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    StreamSolver,
)

FOLDER = Path(__file__).parent / "data" / "format1"
TEXTS = ["the cat sat", "a cat sits", "dogs bark", "the dog barked", "it rains", "rain and rain"]
KINDS = ["cat", "cat", "dog", "dog", "weather", "weather"]


def fitted_models(X, y):
    """Small models by name: one of each estimator, and of each way its state is kept."""
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    two, thin, gram = y < 2, sparse.csr_array(X), X @ X.T
    settings = {"random_state": 0}
    stream = LinearMulticlassSVC(**settings, stream=StreamSolver(average=True))
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), stop_words=["the"])
    return {
        "linear": LinearMulticlassSVC(**settings, store_dual=True).fit(X, words),
        "linear_two_classes": LinearMulticlassSVC(**settings, solver=DualSolver()).fit(
            X[two], y[two]
        ),
        "linear_sparse": LinearMulticlassSVC(**settings).fit(thin, y).sparsify(),
        "linear_stream": stream.partial_fit(X, words),
        "linear_cv": LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=3, **settings).fit(X, words),
        "kernel": KernelMulticlassSVC(**settings, solver=KernelSolver()).fit(X, words),
        "kernel_cv": KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=3, **settings).fit(X, y),
        "larank": LaRankClassifier(**settings).fit(X, words),
        "larank_sparse": LaRankClassifier(kernel="linear", **settings).fit(thin, y),
        "larank_precomputed": LaRankClassifier(kernel="precomputed", **settings).fit(gram, y),
        "text": make_pipeline(vectorizer, LinearMulticlassSVC(**settings)).fit(TEXTS, KINDS),
    }


def inputs_of(name: str, X):
    """What a model of `fitted_models` is asked about."""
    return {"larank_precomputed": X @ X.T, "text": TEXTS}.get(name, X)


if __name__ == "__main__":
    X, y = load_iris(return_X_y=True)
    X, y = (X - X.mean(axis=0))[::4], y[::4]
    FOLDER.mkdir(parents=True, exist_ok=True)
    expected = {"X": X}
    for name, model in fitted_models(X, y).items():
        polymargin.save(model, FOLDER / f"{name}.pmz")
        expected[name] = model.decision_function(inputs_of(name, X))
    np.savez_compressed(FOLDER / "expected.npz", **expected)
