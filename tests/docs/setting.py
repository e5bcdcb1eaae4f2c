"""What the code of the pages takes for granted: data, files and a few models, all small."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from polymargin import LinearMulticlassSVC
from polymargin.export import to_liblinear
from polymargin.io import Dataset, write_directory, write_svmlight

ORDERS = "order id,price,country,comment,Product Category\n" + "".join(
    f'{n},"{n % 7},200.5",{("FR", "DE")[n % 2]},{("soft bear", "sharp saw")[n % 2]} {n % 5},'
    f"{('toys', 'tools')[n % 2]}\n"
    for n in range(40)
)

# Before a block that contains a text, what it means by its names.
BEFORE = {
    'convert_svmlight("big.svm"': "write_svmlight(small, 'big.svm')\n"
    "write_directory(small, 'test.data')\n"
    "files, read_part = [0, 1], lambda part: (X[part::2], y[part::2])",
    "iter_svmlight": "write_huge()",
    'read_data("clinc150': "write_texts()",
    'read_data("orders.csv"': "write_orders()",
    'from_liblinear("theirs.model")': "to_liblinear(clf, 'theirs.model')",
    "HashingVectorizer(": "stream = [(['a flight', 'pear and plum'], ['travel', 'fruit'])] * 3\n"
    "clf = LinearMulticlassSVC()",
    "write_report(": "model, X_test, y_test = clf, X_new, y_new",
    "ConvergenceDisplay.from_estimator(clf)": "predictions = clf.predict(X_test)",
    '("ham", "spam")': "X, y = X[:40], np.array(['ham', 'spam'] * 20)",
    "top_k=5": "X, y = digits",
    "warm_start=True": "X, y = digits",
    "kernel=my_kernel": "my_kernel = lambda A, B: A @ B.T + 1\nK = X @ X.T",
}


def setting(folder: Path) -> dict[str, Any]:
    """The names that pages use without saying where they come from."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    train, new = (X[:200], y[:200]), (X[200:300], y[200:300])
    small = Dataset(X=train[0], y=train[1].astype(float))
    write_svmlight(small, folder / "train.svm")
    text = (folder / "train.svm").read_bytes()
    for name in ("train.svm.gz", "test.svm.gz"):
        (folder / name).write_bytes(gzip.compress(text))

    def write_texts() -> None:
        rows = [
            {"text": ("pear plum", "saw drill")[n % 2], "label": n % 2, "split": "train"}
            for n in range(20)
        ]
        content = "\n".join(map(json.dumps, rows)).encode()
        (folder / "clinc150.jsonl.gz").write_bytes(gzip.compress(content))

    return {
        "np": np,
        "X": train[0],
        "y": train[1],
        "digits": train,
        "X_new": new[0],
        "y_new": new[1],
        "X_validation": new[0],
        "y_validation": new[1],
        "stream": [(X[i : i + 50], y[i : i + 50]) for i in range(0, 200, 50)],
        "clf": LinearMulticlassSVC(tol=1e-2).fit(*train),
        "small": small,
        "vectors": train[0],
        "labels": train[1],
        "LinearMulticlassSVC": LinearMulticlassSVC,
        "make_pipeline": make_pipeline,
        "TfidfVectorizer": TfidfVectorizer,
        "write_svmlight": write_svmlight,
        "write_directory": write_directory,
        "to_liblinear": to_liblinear,
        "write_texts": write_texts,
        "write_orders": lambda: (folder / "orders.csv").write_text(ORDERS),
        "write_huge": lambda: (folder / "huge.svm.xz").write_bytes(lzma.compress(text)),
    }
