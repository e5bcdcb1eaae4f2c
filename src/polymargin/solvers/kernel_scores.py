"""Scores of a kernel machine, ``S = K(X, support) dual_coef^T``, without that kernel matrix.

The work is cut into blocks of rows and of support vectors, so that the kernel values at any one
time fit in a fixed amount of memory, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np

from polymargin.arrays import Floats, Matrix
from polymargin.core import core
from polymargin.kernel_functions import KernelFunction, share_out, strips, tiles

BLOCK_BYTES = 32 * 2**20
SUPPORT_AT_ONCE = 2048


def kernel_scores(
    function: KernelFunction | None,
    X: Matrix,
    support_vectors: Matrix,
    dual_coef: Floats,
    threads: int = 1,
) -> Floats:
    """Scores of the rows of X, (n, n_classes), in its dtype, which is that of the support vectors.

    Without a function X holds kernel values with the support vectors already, (n, n_support). A
    kernel that is a Python function is called by one thread only.
    """
    n, n_support = X.shape[0], dual_coef.shape[1]
    scores = np.zeros((n, dual_coef.shape[0]), X.dtype)
    if n == 0 or n_support == 0:
        return scores
    if function is None:
        scores[:] = X @ dual_coef.T
        return scores
    if function.multiplies_itself(X, support_vectors):
        return _of_dense_rows(function, X, support_vectors, dual_coef, threads)
    threads = min(threads, 1 if callable(function.kernel) else n)
    columns = min(n_support, SUPPORT_AT_ONCE)
    rows = max(1, BLOCK_BYTES // (threads * columns * X.dtype.itemsize))
    rows = min(rows, -(-n // threads))
    norms = None if callable(function.kernel) else function.norms(support_vectors)
    coef = dual_coef.astype(X.dtype)

    def one_block(block: slice) -> None:
        A = X[block]
        for part in tiles(n_support, columns):
            b_norms = None if norms is None else norms[part]
            K = function.block(A, support_vectors[part], None, b_norms)
            scores[block] += K @ coef[:, part].T

    share_out(one_block, tiles(n, rows), threads)
    return scores


def _of_dense_rows(
    function: KernelFunction, X: Floats, support_vectors: Floats, dual_coef: Floats, threads: int
) -> Floats:
    X, support_vectors = np.ascontiguousarray(X), np.ascontiguousarray(support_vectors)
    compiled, coef = function.compiled, np.ascontiguousarray(dual_coef.T, X.dtype)
    scores = np.zeros((len(X), len(dual_coef)), X.dtype)
    norms, of_support = function.norms(X), function.norms(support_vectors)
    support, everyone = np.arange(len(support_vectors)), np.arange(len(X))

    def one_strip(part: slice) -> None:
        rows = everyone[part]
        sums = np.zeros((len(rows), scores.shape[1]))
        core.add_kernel_sums(
            compiled,
            *(support_vectors, of_support, support),
            coef,
            *(X, norms, rows),
            out=sums,
            places=everyone[: len(rows)],
        )
        scores[part] = sums

    work = len(support_vectors) * X.shape[1]
    share_out(one_strip, strips(len(X), work, threads), threads)
    return scores
