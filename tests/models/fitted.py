"""Small fitted models of every kind that a model file holds."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    StreamSolver,
)

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
WORDS = np.array(["setosa", "versi color", "virginica é"])[Y]
TEXTS = [
    "the cat sat",
    "a cat sits there",
    "dogs bark",
    "the dog barked again",
    "it rains today",
    "rain, rain and rain",
]
KINDS = ["cat", "cat", "dog", "dog", "weather", "weather"]


ROW_MODELS = (
    "linear",
    "binary",
    "solver",
    "float32",
    "sparsified",
    "booleans",
    "objects",
    "cross-validated",
    "with a stream solver",
    "kernel",
    "kernel of two",
    "sparse kernel",
    "larank",
    "sparse larank",
    "larank to a gap",
    "scaled",
    "other scalers",
)
TEXT_MODELS = ("tf-idf", "tf", "fixed", "counts", "hashed", "hashed tf-idf")


def linear(**params) -> LinearMulticlassSVC:
    return LinearMulticlassSVC(random_state=0, **params)


def row_models() -> dict[str, object]:
    """Fitted on rows of numbers, by the names of `ROW_MODELS`."""
    two = Y < 2
    sparse_X = sparse.csr_array(X)
    solver = DualSolver(shuffle=False, time_limit=100.0)
    return {
        "linear": linear(
            C=np.float64(0.5), max_iter=np.int64(2000), store_dual=True, warm_start=True
        ).fit(X, WORDS),
        "binary": linear(loss="one_vs_rest").fit(X[two], Y[two]),
        "solver": linear(solver=solver, class_weight={0: 2, 1: 1.5}).fit(X, Y),
        "float32": linear(loss="top_k_beta", top_k=2).fit(X.astype(np.float32), Y),
        "sparsified": linear().fit(sparse_X, Y).sparsify(),
        "booleans": linear().fit(X, Y == 1),
        "objects": linear().fit(sparse_X, WORDS.astype(object)),
        "cross-validated": LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, WORDS),
        "with a stream solver": linear(stream=StreamSolver(average=True)).fit(X, Y),
        "kernel": KernelMulticlassSVC(random_state=0, solver=KernelSolver()).fit(X, WORDS),
        "kernel of two": KernelMulticlassSVC(kernel="poly", warm_start=True).fit(X[two], Y[two]),
        "sparse kernel": KernelMulticlassSVC().fit(sparse_X, Y),
        "larank": LaRankClassifier(random_state=0).fit(X, WORDS),
        "sparse larank": LaRankClassifier(random_state=0, kernel="linear").fit(sparse_X, Y),
        "larank to a gap": LaRankClassifier(tol=0.01, random_state=0).fit(X[two], Y[two]),
        "scaled": make_pipeline(StandardScaler(), linear()).fit(X, WORDS),
        "other scalers": make_pipeline(
            MinMaxScaler(feature_range=(-1, 1)),
            MaxAbsScaler(),
            "passthrough",
            Normalizer(),
            linear(),
        ).fit(X, Y),
    }


def text_models() -> dict[str, Pipeline]:
    """Fitted on texts, by the names of `TEXT_MODELS`."""
    vectorizers = {
        "tf-idf": [TfidfVectorizer(ngram_range=(1, 2), stop_words=["the", "a"], sublinear_tf=True)],
        "tf": [TfidfVectorizer(use_idf=False, dtype=np.float32)],
        "fixed": [TfidfVectorizer(vocabulary=["cat", "dog", "rain"])],
        "counts": [CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)), TfidfTransformer()],
        "hashed": [HashingVectorizer(n_features=2**10)],
        "hashed tf-idf": [HashingVectorizer(n_features=2**10), TfidfTransformer()],
    }
    return {
        name: make_pipeline(*steps, linear()).fit(TEXTS, KINDS)
        for name, steps in vectorizers.items()
    }
