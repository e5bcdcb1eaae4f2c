"""Which classes are taken for which others: what to read of a large confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from polymargin.displays._axes import Display
from polymargin.evaluation import ConfusedPair, Evaluation, compare, evaluate
from polymargin.fitted import Classifier, Examples, split_pipeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class ConfusedPairsDisplay(Display):
    """The pairs of classes that are confused most, as bars.

    Use :meth:`from_estimator` or :meth:`from_predictions`. It shows what matters of a confusion
    matrix that is too large to read.

    Parameters
    ----------
    pairs : list of ConfusedPair
        True label, predicted label, number of examples and their share of the true class, most
        frequent first; of a model with costs, most expensive first.
    n_errors : int, default=None
        All errors, those of other pairs too.
    n_examples : int, default=None
        All examples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after :meth:`plot`.
    figure_ : matplotlib Figure
        The figure of the axes.
    bars_ : matplotlib BarContainer
        A bar per pair.

    Examples
    --------
    >>> from polymargin import ConfusedPairsDisplay
    >>> y, predicted = ["cat", "cat", "dog"], ["dog", "cat", "dog"]
    >>> display = ConfusedPairsDisplay.from_predictions(y, predicted)
    >>> [(str(pair.true), str(pair.predicted), pair.count) for pair in display.pairs]
    [('cat', 'dog', 1)]
    """

    pairs: list[ConfusedPair]
    n_errors: int | None = None
    n_examples: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Examples,
        y: ArrayLike,
        *,
        n_pairs: int = 15,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> ConfusedPairsDisplay:
        """Predict examples and plot what is confused.

        Parameters
        ----------
        estimator : classifier
            Fitted; a pipeline as well.
        X : array, sparse matrix or list
            Examples.
        y : array-like of shape (n,)
            Their labels. Those that the estimator does not know count as errors.
        n_pairs : int, default=15
            Number of pairs.
        ax, **kwargs
            As in :meth:`plot`.

        Returns
        -------
        ConfusedPairsDisplay
            The display, plotted.
        """
        if hasattr(split_pipeline(estimator)[1], "decision_function"):
            found = evaluate(estimator, X, y)
        else:
            found = compare(y, estimator.predict(X))
        return cls._from_evaluation(found, n_pairs).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        n_pairs: int = 15,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> ConfusedPairsDisplay:
        """Plot what is confused in predictions from anywhere.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            Labels and predictions.
        n_pairs, ax, **kwargs
            As in :meth:`from_estimator`.

        Returns
        -------
        ConfusedPairsDisplay
            The display, plotted.
        """
        return cls._from_evaluation(compare(y_true, y_pred), n_pairs).plot(ax=ax, **kwargs)

    @classmethod
    def _from_evaluation(cls, found: Evaluation, n_pairs: int) -> ConfusedPairsDisplay:
        if n_pairs < 1:
            raise ValueError(f"n_pairs must be at least 1, got {n_pairs}.")
        n = found.n_examples
        pairs = found.confused_pairs(n_pairs)
        return cls(pairs=pairs, n_errors=n - found.n_correct, n_examples=n)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ConfusedPairsDisplay:
        """Plot, the most confused pair at the top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **kwargs : dict
            For matplotlib's ``barh``.

        Returns
        -------
        ConfusedPairsDisplay
            Itself.
        """
        height = 1.2 + 0.3 * max(1, len(self.pairs))
        ax = self._take_axes(ax, figsize=(7, height))
        places = range(len(self.pairs))
        self.bars_ = ax.barh(places, [pair.count for pair in self.pairs], **kwargs)
        # a dollar sign would begin a formula
        names = [f"{pair.true} → {pair.predicted}".replace("$", r"\$") for pair in self.pairs]
        ax.set_yticks(list(places), names)
        ax.bar_label(self.bars_, [f"{pair.share:.0%}" for pair in self.pairs], padding=3)
        ax.margins(x=0.1)
        ax.invert_yaxis()
        known = self.n_errors is not None and self.n_examples is not None
        ax.set(
            xlabel="examples (and their share of the true class)",
            ylabel="true → predicted",
            title=f"{self.n_errors:,} errors in {self.n_examples:,} examples" if known else "",
        )
        return self
