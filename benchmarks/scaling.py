"""How the time of an unshrunk pass grows with examples, with nonzeros per row and with classes.

    python -m benchmarks.scaling [--quick]

Each grid varies one size and keeps the others. The exponent is the slope of log(time) against
log(size): 1 is linear, less than 1 means that some cost does not depend on that size.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import generate_sparse
from benchmarks.passes import make_problem, pass_seconds

BASE = {"n": 10_000, "nonzeros": 40, "n_classes": 64}
N_FEATURES = 1_280
GRIDS = {
    "n": (5_000, 10_000, 20_000, 40_000, 80_000),
    "nonzeros": (20, 40, 80, 160, 320),
    "n_classes": (32, 64, 128, 256, 512),
}
NAMES = {"n": "examples", "nonzeros": "nonzeros per row", "n_classes": "classes"}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Fit ``seconds = const * sizes ** exponent`` by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(varied: str, sizes: Sequence[int], loss: str) -> list[float]:
    """Time a pass at each size of one grid.

    Parameters
    ----------
    varied : str
        A key of ``GRIDS``.
    sizes : sequence of int
        Its values.
    loss : str
        Name of the loss.

    Returns
    -------
    list of float
        CPU seconds per pass.
    """
    seconds = []
    for size in sizes:
        X, y = generate_sparse(n_features=N_FEATURES, **(BASE | {varied: size}))
        seconds.append(pass_seconds(make_problem(X, y, loss)))
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Print the times and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the three smallest sizes of a grid")
    options = parser.parse_args(argv)
    print("| loss | varied | sizes | ms per pass | exponent |")
    print("|---|---|---|---|--:|")
    with threadpool_limits(1):
        for loss in ("crammer_singer", "weston_watkins"):
            for varied, grid in GRIDS.items():
                sizes = grid[:3] if options.quick else grid
                seconds = measure(varied, sizes, loss)
                print(
                    f"| {loss} | {NAMES[varied]} | {', '.join(map(str, sizes))} "
                    f"| {', '.join(f'{1e3 * s:.1f}' for s in seconds)} "
                    f"| {exponent(sizes, seconds):.2f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
