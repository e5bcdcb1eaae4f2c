"""A regularisation path as a picture: what changes with C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polymargin.arrays import Doubles
from polymargin.displays._axes import Display
from polymargin.estimators import KernelMulticlassSVCCV, LinearMulticlassSVCCV
from polymargin.estimators.path import RegularizationPath
from polymargin.fitted import Features
from polymargin.storage import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Quantity = Literal["accuracy", "norm", "objective", "n_support"]
LABELS = {
    "accuracy": "accuracy",
    "norm": "norm of the weights",
    "objective": "objective / C",
    "n_support": "examples with a dual variable",
    "score": "score",
}


@dataclass(kw_only=True, eq=False, repr=False)
class RegularizationPathDisplay(Display):
    """What changes along a path: a quantity against C.

    Make one with `from_path`, `from_data` or `from_cv`.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C.
    values : ndarray of shape (n_Cs,)
        The quantity.
    quantity : str
        What it is; the label of the vertical axis.
    deviations : ndarray of shape (n_Cs,), default=None
        Standard deviations, drawn as a band.
    best : float, default=None
        A value of C to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import RegularizationPathDisplay, regularization_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = regularization_path(X, y, [0.01, 0.1, 1.0], random_state=0)
    >>> display = RegularizationPathDisplay.from_path(path, quantity="n_support")
    """

    Cs: Array
    values: Array
    quantity: str = "score"
    deviations: Array | None = None
    best: float | None = None

    def plot(
        self, *, ax: Axes | None = None, name: str | None = None, **line: Any
    ) -> RegularizationPathDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None: a new figure.
        name : str, default=None
            Label of the curve.
        **line : dict
            Passed to matplotlib's `plot`.

        Returns
        -------
        RegularizationPathDisplay
            With `ax_`, `figure_` and `line_`.
        """
        ax = self._take_axes(ax)
        order = np.argsort(self.Cs)
        Cs, values = self.Cs[order], self.values[order]
        (self.line_,) = ax.plot(Cs, values, **{"marker": "o", "label": name, **line})
        if self.deviations is not None:
            spread = self.deviations[order]
            colour = self.line_.get_color()
            ax.fill_between(Cs, values - spread, values + spread, color=colour, alpha=0.2)
        if self.best is not None:
            ax.axvline(self.best, linestyle=":", color=self.line_.get_color())
        ax.set(xscale="log", xlabel="C", ylabel=LABELS.get(self.quantity, self.quantity))
        if name is not None:
            ax.legend()
        return self

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath,
        X: Features | None = None,
        y: ArrayLike | None = None,
        *,
        quantity: Quantity = "norm",
        ax: Axes | None = None,
        name: str | None = None,
        **line: object,
    ) -> RegularizationPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : RegularizationPath
            From `regularization_path`.
        X, y : array-like, default=None
            Data to score the models on: for ``quantity="accuracy"``.
        quantity : {"norm", "objective", "n_support", "accuracy"}, default="norm"
            Norm of the weights, objective divided by C, number of examples with a nonzero dual
            variable, or accuracy on X and y.
        ax, name, **line
            As in `plot`.

        Returns
        -------
        RegularizationPathDisplay
            Drawn.
        """
        values = _quantity(path, quantity, X, y)
        return cls(Cs=path.Cs, values=values, quantity=quantity).plot(ax=ax, name=name, **line)

    @classmethod
    def from_cv(
        cls,
        estimator: LinearMulticlassSVCCV | KernelMulticlassSVCCV,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **line: object,
    ) -> RegularizationPathDisplay:
        """Draw the mean score and its standard deviation over the folds.

        Parameters
        ----------
        estimator : LinearMulticlassSVCCV or KernelMulticlassSVCCV
            Fitted.
        ax, name, **line
            As in `plot`.

        Returns
        -------
        RegularizationPathDisplay
            Drawn; `C_` is marked.
        """
        check_is_fitted(estimator, "scores_")
        tried = ~np.isnan(estimator.scores_).any(axis=0)
        scores = estimator.scores_[:, tried]
        display = cls(
            Cs=estimator.Cs_[tried],
            values=scores.mean(axis=0),
            deviations=scores.std(axis=0),
            best=estimator.C_,
        )
        return display.plot(ax=ax, name=name, **line)


def _quantity(
    path: RegularizationPath, quantity: str, X: Features | None, y: ArrayLike | None
) -> Array:
    if quantity == "norm":
        squared: Doubles = np.einsum("cij,cij->c", path.coefs, path.coefs, dtype=np.float64)
        return np.sqrt(squared)
    if quantity == "objective":
        return path.objectives / path.Cs
    if quantity == "n_support":
        return path.n_support
    if quantity != "accuracy":
        raise ValueError(
            f'quantity must be "norm", "objective", "n_support" or "accuracy", got {quantity!r}.'
        )
    if X is None or y is None:
        raise ValueError('quantity="accuracy" needs X and y to score the models on.')
    return np.array([path.estimator(C).score(X, y) for C in path.Cs])
