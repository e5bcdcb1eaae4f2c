"""What is minimised: examples as rows or by a kernel, their labels and costs, and the loss."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from polymargin.arrays import Codes, Doubles, Indices, Matrix
from polymargin.data import MatrixRows, Rows, as_rows
from polymargin.kernel_functions import TrainingKernel
from polymargin.losses import Loss

ROOM_TO_ROUND = 1e-6  # of costs, in single precision


@dataclass(frozen=True, eq=False)
class Problem:
    """``min_W 1/2 ||W||^2 + sum_i c_i loss(W^T x_i, y_i)``.

    Parameters
    ----------
    X : ndarray, CSR matrix or Rows of shape (n, d)
        float32 or float64. Not copied where it is C-contiguous, or CSR with sorted indices and no
        duplicates; not to be changed afterwards.
    y : int32 ndarray of shape (n,)
        Class codes from 0 to ``n_classes - 1``.
    c : float64 ndarray of shape (n,)
        ``c_i = C * sample_weight_i * class_weight_{y_i}``; an example with zero counts as absent.
    loss : Loss
    n_classes : int
    intercept_scaling : float
        Value of the appended constant feature; 0 for no intercept.

    Attributes
    ----------
    rows : Rows
        X, checked.

    Examples
    --------
    >>> import numpy as np
    >>> from polymargin import Problem, get_loss
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    >>> problem = Problem(X, y, np.ones(3), get_loss("crammer_singer"), 3)
    >>> problem.n_examples, problem.n_classes
    (3, 3)
    """

    X: Matrix | Rows
    y: Codes
    c: Doubles
    loss: Loss
    n_classes: int
    intercept_scaling: float = 0.0
    rows: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = as_rows(self.X)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "X", rows.matrix if rows.is_whole else rows)
        # compiled code takes no NumPy integer, which ``y.max() + 1`` is
        object.__setattr__(self, "n_classes", operator.index(self.n_classes))
        if self.y.shape != (rows.n,) or self.c.shape != (rows.n,):
            raise ValueError(
                f"X has {rows.n} rows, but y has shape {self.y.shape} and c has shape "
                f"{self.c.shape}."
            )
        if self.n_classes < 2:
            raise ValueError(f"A problem needs at least 2 classes, got {self.n_classes}.")
        if not np.isfinite(self.c).all() or (self.c < 0).any() or not (self.c > 0).any():
            raise ValueError("c must be finite and non-negative, and positive somewhere.")
        if not np.isfinite(float(self.intercept_scaling) ** 2):
            raise ValueError("The square of intercept_scaling overflows: use a smaller one.")
        self.loss.check_n_classes(self.n_classes)

    @property
    def n_examples(self) -> int:
        """Number of rows of X."""
        return self.rows.n

    @property
    def n_features(self) -> int:
        """Number of columns of X, without the constant feature."""
        return self.rows.d

    @property
    def squared_lengths(self) -> Doubles:
        """``||x_i||^2``, without the constant feature."""
        return self.rows.squared_norms

    @property
    def has_intercept(self) -> bool:
        """Whether there is a constant feature."""
        return self.intercept_scaling != 0

    @cached_property
    def squared_norms(self) -> Doubles:
        """``||x_i||^2``, with the constant feature."""
        return self.rows.squared_norms + self.intercept_scaling**2

    def with_cost(self, c: Doubles) -> Problem:
        """The same problem with other costs of the examples; nothing of X is copied."""
        other = replace(self, X=self.rows, c=c)
        other.__dict__["squared_norms"] = self.squared_norms
        return other

    def in_single(self) -> Problem:
        """The problem for sweeps in single precision, of rows in memory in double.

        Its costs are lower by more than single precision rounds: what is feasible there is here.
        """
        assert isinstance(self.rows, MatrixRows)
        other = replace(self, X=self.rows.in_single, c=self.c * (1.0 - ROOM_TO_ROUND))
        other.__dict__["squared_norms"] = self.squared_norms
        return other

    @cached_property
    def visited(self) -> Indices:
        """Examples a sweep has to visit: those with a weight and a nonzero row."""
        return np.flatnonzero((self.c > 0) & (self.squared_norms > 0))

    @cached_property
    def constant_loss(self) -> float:
        """What all-zero rows add to the primal and to the dual alike."""
        absent = (self.c > 0) & (self.squared_norms == 0)
        return float(self.c[absent] @ self.loss.value_at_zero(self.n_classes)[self.y[absent]])


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """A kernel machine to train: ``scores = K A``."""

    kernel: TrainingKernel
    y: Codes
    c: Doubles
    loss: Loss
    n_classes: int

    def __post_init__(self) -> None:
        self.loss.check_n_classes(self.n_classes)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.kernel.n

    @property
    def squared_lengths(self) -> Doubles:
        """``k(x_i, x_i)``."""
        return self.kernel.diagonal()

    def with_cost(self, c: Doubles) -> KernelProblem:
        """The same problem with other costs of the examples."""
        return replace(self, c=c)


Examples = Problem | KernelProblem
