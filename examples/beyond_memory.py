"""Train on more data than the training may hold: a source of blocks, and a data directory.

    python examples/beyond_memory.py [--rows 200000] [--memory 30MB]

Texts of 40 words, generated block by block, go to a data directory; the fit reads it in blocks, its
rows in an order that is dealt anew in every pass. Prints how much memory that took, and what the
duality gap proves.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from polymargin import LinearMulticlassSVC
from polymargin.io import BlockSource, write_blocks

FEATURES, CLASSES, WORDS, BLOCK = 20_000, 20, 40, 20_000


def block(number: int, n: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Examples whose words come from a common vocabulary and from one of their class."""
    rng = np.random.default_rng(number)
    y = np.sort(rng.integers(CLASSES, size=n))  # sorted, as files often are
    common = (FEATURES * rng.random((n, WORDS)) ** 3).astype(np.int64)
    own = (y[:, None] * 991 + (800 * rng.random((n, WORDS)) ** 2).astype(np.int64)) * 7 % FEATURES
    words = np.sort(np.where(rng.random((n, WORDS)) < 0.3, own, common), axis=1)
    values = np.full(words.size, WORDS**-0.5, np.float32)
    X = sparse.csr_array((values, words.ravel(), np.arange(n + 1) * WORDS), shape=(n, FEATURES))
    X.sum_duplicates()
    return X, y


def main(arguments: list[str] | None = None) -> float:
    """Generate, train, predict; returns the accuracy on fresh examples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--memory", default="30MB")
    given = parser.parse_args(arguments)

    def blocks() -> Iterator[tuple[sparse.csr_array, np.ndarray]]:
        for number, first in enumerate(range(0, given.rows, BLOCK)):
            yield block(number, min(BLOCK, given.rows - first))

    source = BlockSource(blocks)
    with tempfile.TemporaryDirectory() as folder:
        path = write_blocks(source, Path(folder) / "train.data")
        size = sum(file.stat().st_size for file in path.iterdir())
        print(f"{given.rows:,} rows, {size / 1e6:,.0f} MB on disk; memory_limit={given.memory}")
        began = time.perf_counter()
        model = LinearMulticlassSVC(random_state=0, memory_limit=given.memory, tol=1e-2).fit(path)
        print(f"{model.n_iter_} passes in {time.perf_counter() - began:.1f} s")
    print(f"objective {model.objective_:.6g}, within {model.dual_gap_:.1%} of the best, proven")
    print(f"weights: {model.coef_.nbytes / 1e6:.0f} MB; data held: {given.memory} at most")
    accuracy = model.score(BlockSource([block(10**6, 5_000)]))
    print(f"accuracy on fresh examples: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
