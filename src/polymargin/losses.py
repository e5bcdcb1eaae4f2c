"""The five losses: one place that says what each one is.

With scores ``s``, true class ``y`` and margins ``h_j = 1 + s_j - s_y`` over the wrong classes:

================== ============================================ ================================
loss               value                                        block set of the dual
================== ============================================ ================================
``crammer_singer`` ``max(0, max_j h_j)``                        ``sum p <= c``
``weston_watkins`` ``sum_j max(0, h_j)``                        ``p_j <= c``
``top_k_beta``     ``(1/k) sum of the k largest max(0, h_j)``   ``p_j <= c/k``, ``sum p <= c``
``top_k_alpha``    ``max(0, (1/k) sum of the k largest h_j)``   ``p_j <= sum(p)/k``, ``sum p <= c``
``one_vs_rest``    ``sum_m max(0, 1 - y_m s_m)``, all classes   ``p_m <= c``
================== ============================================ ================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polymargin._kernels import kernels

LOSSES = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest")
TOP_K_LOSSES = ("top_k_alpha", "top_k_beta")


@dataclass(frozen=True)
class Loss:
    """A multiclass loss by name.

    Parameters
    ----------
    name : str
        One of :data:`LOSSES`.
    top_k : int or None
        The k of the top-k losses; no effect on the others.
    """

    name: str
    top_k: int | None = None

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise ValueError(f"Unknown loss {self.name!r}; expected one of {', '.join(LOSSES)}.")
        if self.is_top_k and self.top_k is None:
            raise ValueError(
                f"loss={self.name!r} needs top_k, the number of guesses that count as right: "
                "an integer from 1 to the number of classes - 1."
            )
        if self.is_top_k and not int(self.top_k or 0) >= 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k!r}.")

    @property
    def is_top_k(self) -> bool:
        """Whether the loss looks at the k best wrong classes."""
        return self.name in TOP_K_LOSSES

    @property
    def is_coupled(self) -> bool:
        """Whether the loss compares classes (all but one-vs-rest)."""
        return self.name != "one_vs_rest"

    @property
    def k(self) -> int:
        """``top_k`` as the kernels want it: 1 where it has no meaning."""
        return int(self.top_k) if self.is_top_k and self.top_k is not None else 1

    def check_n_classes(self, n_classes: int) -> None:
        """Raise ``ValueError`` when ``top_k`` does not fit the number of classes."""
        if self.is_top_k and self.k >= n_classes:
            raise ValueError(
                f"top_k={self.top_k} is too large for {n_classes} classes; it can be at most "
                f"{n_classes - 1} (the number of classes - 1)."
            )

    def margins(self, scores: NDArray, y: NDArray) -> NDArray:
        """``h`` of every example, (n, K-1) without the true class; one-vs-rest: (n, K)."""
        scores = np.asarray(scores, dtype=np.float64)
        n, n_classes = scores.shape
        rows = np.arange(n)
        if not self.is_coupled:
            signs = np.full_like(scores, -1.0)
            signs[rows, y] = 1.0
            return 1.0 - signs * scores
        wrong = np.ones((n, n_classes), dtype=bool)
        wrong[rows, y] = False
        h: NDArray = 1.0 + scores - scores[rows, y][:, None]
        return h[wrong].reshape(n, n_classes - 1)

    def value(self, scores: ArrayLike, y: ArrayLike) -> NDArray:
        """Loss of every example.

        Parameters
        ----------
        scores : array of shape (n, K)
        y : integer array of shape (n,)
            Class codes.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        h = self.margins(np.asarray(scores), np.asarray(y))
        if self.name == "crammer_singer":
            return np.maximum(h.max(axis=1), 0.0)
        if not self.is_top_k:
            return np.maximum(h, 0.0).sum(axis=1)
        if self.name == "top_k_beta":
            h = np.maximum(h, 0.0)
        largest = -np.partition(-h, self.k - 1, axis=1)[:, : self.k]
        return np.maximum(largest.mean(axis=1), 0.0)

    def value_at_zero(self, n_classes: int) -> float:
        """Loss of an example whose scores are all zero."""
        if self.name == "weston_watkins":
            return n_classes - 1.0
        return float(n_classes) if self.name == "one_vs_rest" else 1.0

    @property
    def restricted_methods(self) -> list[str]:
        """Methods for the restricted problem, the default first."""
        return list(kernels.restricted_methods(self.name))

    def check_restricted(self, method: str, tol: float | None) -> tuple[str, float]:
        """The method and tolerance as the kernels want them; ``"auto"`` is the default method."""
        known = self.restricted_methods
        if method != "auto" and method not in known:
            raise ValueError(
                f"restricted={method!r} does not solve the restricted problem of {self.name}; use "
                f'"auto" or one of {", ".join(map(repr, known))}.'
            )
        if tol is not None and not (np.isfinite(tol) and tol >= 0):
            raise ValueError(f"restricted_tol must be a non-negative number or None, got {tol!r}.")
        return known[0] if method == "auto" else method, -1.0 if tol is None else float(tol)

    def solve_restricted(
        self,
        B: ArrayLike,
        c: ArrayLike,
        *,
        method: str = "auto",
        tol: float | None = None,
        start: ArrayLike | None = None,
        guess: ArrayLike = 0.0,
    ) -> NDArray:
        """Solution of the restricted problem.

        Minimises ``1/2 (||p||^2 + (sum p)^2) - b.p`` over the block set of the loss
        (one-vs-rest: ``1/2 ||p||^2 - b.p``).

        Parameters
        ----------
        B : array of shape (m,) or (rows, m)
            One restricted problem per row, float32 or float64: ``b_j`` of the m wrong classes
            (one-vs-rest: of all classes).
        c : float or array of shape (rows,)
            The bound ``c`` of each row's block set.
        method : str
            One of ``restricted_methods``.
        tol : float or None
            Tolerance of the iterative methods; None: each method's own.
        start : array of the shape of B or None
            A feasible block, which iterative methods start from; None: zero.
        guess : float or array of shape (rows,)
            A threshold that may be close to the answer's; costs or saves time only.

        Returns
        -------
        ndarray of the shape and dtype of ``B``
        """
        b = np.asarray(B)
        if b.dtype not in (np.float32, np.float64):
            b = b.astype(np.float64)
        rows = np.ascontiguousarray(np.atleast_2d(b))
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise ValueError(f"B must have shape (m,) or (rows, m) with m >= 1, got {b.shape}.")
        if not np.isfinite(rows).all():
            raise ValueError("B contains NaN or infinity.")
        bounds = np.ascontiguousarray(np.broadcast_to(np.asarray(c, np.float64), rows.shape[:1]))
        if not (bounds > 0).all() or not np.isfinite(bounds).all():
            raise ValueError("c must be positive and finite.")
        if self.is_top_k and self.k > rows.shape[1]:
            raise ValueError(f"top_k={self.top_k} is more than the {rows.shape[1]} wrong classes.")
        p = np.zeros_like(rows)
        if start is not None:
            p[:] = np.reshape(np.asarray(start), rows.shape)
        hint = np.ascontiguousarray(np.broadcast_to(np.asarray(guess, p.dtype), len(p)))
        chosen = self.check_restricted(method, tol)
        kernels.solve_restricted(self.name, self.k, *chosen, rows, bounds, hint, p)
        return p.reshape(b.shape)


def get_loss(name: str, top_k: int | None = None) -> Loss:
    """The loss called ``name``; ``top_k`` is required by the top-k losses and ignored by others."""
    return Loss(name, top_k if name in TOP_K_LOSSES else None)
