"""One measurement of `regression`, run by path with either build: the faster of two fits.

Uses the public interface alone, and nothing of this folder: the other commit may be an old one.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse


def main() -> None:
    """Read the arrays, fit, print the CPU seconds and where polymargin was imported from."""
    path, loss, C, dtype, machine = sys.argv[1:6]
    sys.path = [place for place in sys.path if place not in ("", sys.path[0])]
    import polymargin

    with np.load(path) as arrays:
        y = arrays["y"]
        if "X" in arrays.files:
            X = arrays["X"].astype(dtype)
        else:
            parts = (arrays["data"].astype(dtype), arrays["indices"], arrays["indptr"])
            X = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    settings = {"loss": loss, "top_k": 3 if loss.startswith("top_k") else None, "tol": 1e-3}
    times = []
    for _ in range(2):
        common = {"C": float(C), "random_state": 0}
        if machine == "larank":
            classifier = polymargin.LaRankClassifier(**common)
        elif machine == "kernel":
            classifier = polymargin.KernelMulticlassSVC(**common, **settings)
        else:
            classifier = polymargin.LinearMulticlassSVC(**common, **settings, fit_intercept=False)
        learn = classifier.partial_fit if machine == "stream" else classifier.fit
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learn(X, y)
        times.append(time.process_time() - start)
    print(json.dumps({"seconds": min(times), "file": polymargin.__file__}))


if __name__ == "__main__":
    main()
