"""The scale of mnist's pixels for the LaRank paper's kernel, exp(-0.005 ||x - z||^2), C = 1000.

    python -m benchmarks.papers.larank_scale [--quick]

The paper does not give its scale. Here pixels are in [0, scale]; the scale is the one with the
lowest error of LaRank x1 on the last 10,000 training rows, trained on the first 20,000. The test
set plays no part.
"""

from __future__ import annotations

import numpy as np

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.papers.larank_data import MNIST_SCALE, settings
from benchmarks.papers.study import Claim, Study, run
from polymargin import LaRankClassifier

SCALES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)

SETUP = f"""
The paper does not give the scale of its pixels, on which its kernel exp(-0.005 ||x - z||^2)
depends. Here pixels are in [0, s], and s is the one of {", ".join(f"{s:g}" for s in SCALES)} with
the lowest error of LaRank x1 on the last 10,000 training rows, trained on the first 20,000
(reduced: 2,000), C = 1000. The test set plays no part.
"""


def error(scale: float, rows: int) -> float:
    """Error of one pass on the rows held out, in percent."""
    data = datasets.load("mnist")
    X = (scale * data.X_train).astype(np.float32)
    clf = LaRankClassifier(**settings("mnist"), random_state=0)
    clf.fit(X[:rows], data.y_train[:rows])
    return 100 * (1 - clf.score(X[-10_000:], data.y_train[-10_000:]))


def experiment(study: Study) -> None:
    """Measure all scales, choose one."""
    rows = 2_000 if study.quick else 20_000
    errors = {s: study.cell(f"{s}/{rows}", lambda s=s: error(s, rows)) for s in SCALES}
    known = {s: e for s, e in errors.items() if e is not None}
    best = min(known, key=known.__getitem__)
    text = "# LaRank, the scale of mnist's pixels\n\n" + markdown_table(
        ["pixels in", "error on the last 10,000 training rows, %"],
        [[f"[0, {s:g}]", f"{e:.2f}"] for s, e in known.items()],
    )
    claim = Claim(
        "Bordes et al. 2007, table 1",
        f"(ours) the other experiments use the best scale, [0, {MNIST_SCALE:g}]",
        f"the best is [0, {best:g}]",
        "yes" if best == MNIST_SCALE else "no",
    )
    study.write(text, {"errors": {f"{s:g}": e for s, e in known.items()}, "best": best}, [claim])


def main(argv: list[str] | None = None) -> int:
    """Command line."""
    return run("larank_scale", experiment, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
