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
    path, loss, C, dtype = sys.argv[1:5]
    sys.path = [place for place in sys.path if place not in ("", sys.path[0])]
    import polymargin

    with np.load(path) as arrays:
        y = arrays["y"]
        if "X" in arrays.files:
            X = arrays["X"].astype(dtype)
        else:
            parts = (arrays["data"].astype(dtype), arrays["indices"], arrays["indptr"])
            X = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    top_k = 3 if loss.startswith("top_k") else None
    times = []
    for _ in range(2):
        classifier = polymargin.LinearMulticlassSVC(
            loss=loss, top_k=top_k, C=float(C), tol=1e-3, fit_intercept=False, random_state=0
        )
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(X, y)
        times.append(time.process_time() - start)
    print(json.dumps({"seconds": min(times), "file": polymargin.__file__}))


if __name__ == "__main__":
    main()
