"""How the objective and its lower bound met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.arrays import Doubles
from polymargin.displays._axes import Display
from polymargin.fitted import Classifier, split_pipeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X_AXES = {"time": "seconds", "pass": "passes"}


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Objective and duality gap in the course of a training.

    Dots are what was certified; thin lines without dots are estimates, of every pass.

    Use :meth:`from_estimator`. The arguments are stored as attributes.

    Parameters
    ----------
    history : dict of ndarray
        ``history_`` of an estimator: an entry per pass. "primal", "dual" and "gap" are what was
        certified, NaN elsewhere; "estimated_gap" and so on what the passes estimated.
    tol : float, default=None
        The relative gap that training was to reach.
    estimator_name : str, default=None
        Goes into the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after :meth:`plot`.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        The curves: of each, what was certified, then what was estimated, where there is any; of
        the gap, the tolerance after them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ConvergenceDisplay, LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(tol=1e-6, random_state=0).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(clf)
    >>> _ = display.ax_.set_title("iris")
    """

    history: Mapping[str, Doubles]
    tol: float | None = None
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        *,
        kind: Literal["gap", "objective"] = "gap",
        x: Literal["time", "pass"] = "time",
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> ConvergenceDisplay:
        """Plot the training of a fitted estimator.

        Parameters
        ----------
        estimator : LinearMulticlassSVC or KernelMulticlassSVC
            Fitted; or a pipeline that ends in one.
        kind : {"gap", "objective"}, default="gap"
            The relative duality gap, or the objective and its lower bound.
        x : {"time", "pass"}, default="time"
            What runs to the right.
        name : str, default=None
            Name in the legend; by default that of the class.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **kwargs : dict
            For matplotlib's ``plot``.

        Returns
        -------
        ConvergenceDisplay
            The display, plotted.
        """
        fitted = split_pipeline(estimator)[1]
        check_is_fitted(fitted)
        history = getattr(fitted, "history_", None)
        if history is None:
            raise ValueError(
                f"{type(fitted).__name__} has no history_: only LinearMulticlassSVC and "
                "KernelMulticlassSVC record one."
            )
        name = type(fitted).__name__ if name is None else name
        display = cls(history=history, tol=getattr(fitted, "tol", None), estimator_name=name)
        return display.plot(kind=kind, x=x, name=name, ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["gap", "objective"] = "gap",
        x: Literal["time", "pass"] = "time",
        name: str | None = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Plot, with the arguments of :meth:`from_estimator`."""
        if kind not in ("gap", "objective"):
            raise ValueError(f'kind must be "gap" or "objective", got {kind!r}.')
        if x not in X_AXES:
            raise ValueError(f'x must be "time" or "pass", got {x!r}.')
        if not (self._known("gap").any() or self._known("estimated_gap").any()):
            raise ValueError("There is no certificate to plot: the model was fitted without any.")
        ax = self._take_axes(ax)
        name = self.estimator_name if name is None else name
        self.lines_ = []
        if kind == "gap":
            self._curve(ax, x, "gap", name or "certified", kwargs)
            if self.tol:
                label = f"tol = {self.tol:g}"
                line = ax.axhline(self.tol, label=label, color="0.5", linestyle="--", linewidth=1)
                self.lines_.append(line)
            ax.set(yscale="log", ylabel="relative duality gap")
        else:
            prefix = f"{name}: " if name else ""
            self._curve(ax, x, "primal", f"{prefix}objective", kwargs)
            self._curve(ax, x, "dual", f"{prefix}lower bound", kwargs)
            ax.set(ylabel="objective")
        ax.set(xlabel=X_AXES[x])
        ax.legend()
        return self

    def _known(self, column: str) -> NDArray[np.bool_]:
        """Where a column has a number; nowhere, where an older model has no such column."""
        values = self.history.get(column, np.full(len(self.history["pass"]), np.nan))
        known: NDArray[np.bool_] = np.isfinite(np.asarray(values, float))
        return known

    def _curve(self, ax: Axes, x: str, column: str, label: str, given: dict[str, Any]) -> None:
        """A curve of what was certified, and a thin one of the estimates in the same colour."""
        across, label = np.asarray(self.history[x], float), str(given.get("label", label))
        colour = given.get("color")
        for of, style in (
            (column, {"marker": "o", "label": label, **given}),
            (
                f"estimated_{column}",
                {"linewidth": 1, "alpha": 0.6, "label": f"{label} (estimated)"},
            ),
        ):
            known = self._known(of)
            if known.any():
                values = np.asarray(self.history[of], float)[known]
                # a closed gap has no place on a log scale
                values = np.where(values > 0, values, np.nan) if column == "gap" else values
                color = {} if colour is None else {"color": colour}
                (line,) = ax.plot(across[known], values, **{**color, **style})
                colour = line.get_color()
                self.lines_.append(line)
