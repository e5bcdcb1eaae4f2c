"""What a loss is to the rest of the library.

With scores ``s``, true class ``y`` and margins ``h_j = margin(y, j) + s_j - s_y`` over the wrong
classes (one-vs-rest: ``h_m = 1 - y_m s_m`` over all), an example with cost ``c`` adds ``c loss(h)``
to the primal. Its dual block ``p >= 0`` lies in the loss's block set and adds ``margin.p -
conjugate(p)`` to the dual; ``c loss(h) - p.h + conjugate(p)`` is its share of the duality gap.

What a loss is worth, and what solvers do with it, is compiled (``src/core/losses``); an object here
names its compiled twin and checks its parameters.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from polymargin.arrays import Doubles, Floats
from polymargin.core import core
from polymargin.losses.margins import Margins

PerClass = TypeVar("PerClass", Floats, sparse.csr_array)
NO_MARGINS = np.empty((0, 0))  # of the compiled losses: all are 1


class Loss:
    """A multiclass loss with its parameters; made by :func:`polymargin.get_loss`.

    Attributes
    ----------
    name : str
        As in :data:`polymargin.LOSSES`.
    parameters : tuple of str
        What :func:`polymargin.get_loss` needs besides the name.
    top_k : int or None
        The k of the top-k losses.
    smoothing : float
        Of the hinge losses; 0 for none.
    gives_probabilities : bool
        Whether the softmax of the scores is what the loss takes for the classes' probabilities.
    dense_dual : bool
        Whether all dual variables of an example are positive, so that they take memory.
    margins : Margins or None
        Those between classes, of the losses that compare classes; None: all are 1.
    no_costs : str
        Why there are none, for the others.
    is_cheap : bool
        Whether its value takes no longer than the margins.
    has_room : bool
        Whether a block of slightly lower cost stays feasible when its values are rounded.
    steepness : float
        The part of ``c ||x||^2`` that acceleration takes for the curvature of an example.
    sum_is_bounded : bool
        Whether the block set has ``sum p <= c``.

    Examples
    --------
    >>> from polymargin import Loss, get_loss
    >>> loss = get_loss("weston_watkins")
    >>> isinstance(loss, Loss), loss.coupled
    (True, True)
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ()
    top_k: int | None = None
    smoothing: float = 0.0
    margins: Margins | None = None
    no_costs: ClassVar[str] = ""
    gives_probabilities: ClassVar[bool] = False
    dense_dual: ClassVar[bool] = False
    is_cheap: ClassVar[bool] = True
    has_room: ClassVar[bool] = True
    steepness: ClassVar[float] = 1.0
    sum_is_bounded: ClassVar[bool] = True

    @property
    def compiled(self) -> core.Loss:
        """The compiled twin."""
        return self._twin(NO_MARGINS if self.margins is None else self.margins.delta)

    def _twin(self, margins: Doubles) -> core.Loss:
        return core.Loss(self.name, self.top_k or 0, float(self.smoothing), margins)

    @property
    def coupled(self) -> bool:
        """Whether the loss compares classes with the true one (all but one-vs-rest)."""
        return self._twin(NO_MARGINS).coupled

    @property
    def flat(self) -> bool:
        """Whether the conjugate is zero on the block set: hinge losses, but no smooth ones."""
        return self._twin(NO_MARGINS).flat

    @property
    def has_violation(self) -> bool:
        """Whether the violation of a block's optimality conditions is defined."""
        return self._twin(NO_MARGINS).has_violation

    def check_n_classes(self, n_classes: int) -> None:
        """Raise ``ValueError`` when the parameters do not fit the number of classes."""

    def most(self, c: Doubles, total: Doubles) -> Doubles:
        """The bound of the block set on each variable, of blocks of these costs and sums."""
        return c

    # --- values ----------------------------------------------------------------------------------

    def of_margins(self, h: Doubles) -> Doubles:
        """Loss of every row of margins."""
        return self._values(h, np.empty(0, np.int32))

    def value(self, scores: ArrayLike, y: ArrayLike) -> Doubles:
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
        return self._values(scores, y)

    def _values(self, rows: ArrayLike, y: ArrayLike) -> Doubles:
        values = np.empty(len(np.asarray(rows)))
        as_given = np.ascontiguousarray(rows, np.float64), np.ascontiguousarray(y, np.int32)
        core.loss_values(self.compiled, *as_given, values)
        return values

    def value_at_zero(self, n_classes: int) -> Doubles:
        """Loss of an example whose scores are all zero, for each true class."""
        if self.margins is None:
            return np.full(n_classes, self.compiled.at_zero(n_classes))
        return self.value(np.zeros((n_classes, n_classes)), np.arange(n_classes))

    # --- two classes -----------------------------------------------------------------------------

    def fold(self, by_class: PerClass) -> PerClass:
        """Rows per class as they are; of two, one row that is positive for the second class."""
        if by_class.shape[0] != 2:
            return by_class
        return by_class[1:] - by_class[:1] if self.coupled else by_class[1:]

    def unfold(self, row: Floats) -> Floats:
        """Both rows of two classes: at the optimum they are opposite."""
        half = row * row.dtype.type(0.5 if self.coupled else 1.0)
        return np.concatenate([-half, half])

    # --- the restricted problem ------------------------------------------------------------------

    @property
    def restricted_methods(self) -> list[str]:
        """Methods for the restricted problem, the default first."""
        return self._twin(NO_MARGINS).methods

    def check_restricted(self, method: str, tol: float | None) -> tuple[str, float]:
        """The method and tolerance as the core wants them; ``"auto"`` is the default method."""
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
    ) -> Floats:
        """Solution of the restricted problem.

        Minimises ``1/2 (||p||^2 + (sum p)^2) - b.p + conjugate(p)`` over the block set of the loss
        (one-vs-rest: without the sum).

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
        self.check_n_classes(rows.shape[1] + 1)
        p = np.zeros_like(rows)
        if start is not None:
            p[:] = np.reshape(np.asarray(start), rows.shape)
        hint = np.ascontiguousarray(np.broadcast_to(np.asarray(guess, p.dtype), len(p)))
        core.solve_restricted(
            self.compiled, *self.check_restricted(method, tol), rows, bounds, hint, p
        )
        return p.reshape(b.shape)
