"""Which classes are taken for which others: what to read of a large confusion matrix."""

from __future__ import annotations

from typing import Any

from polymargin.displays._axes import final_estimator, new_axes
from polymargin.evaluation import ConfusedPair, Evaluation, compare, evaluate


class ConfusedPairsDisplay:
    """The pairs of classes that are confused most, as bars.

    Use :meth:`from_estimator` or :meth:`from_predictions`. It shows what matters of a confusion
    matrix that is too large to read.

    Parameters
    ----------
    pairs : list of ConfusedPair
        True label, predicted label, number of examples and their share of the true class, most
        frequent first.
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
    >>> display.pairs
    [ConfusedPair(true='cat', predicted='dog', count=1, share=0.5)]
    """

    def __init__(
        self,
        *,
        pairs: list[ConfusedPair],
        n_errors: int | None = None,
        n_examples: int | None = None,
    ) -> None:
        self.pairs = pairs
        self.n_errors = n_errors
        self.n_examples = n_examples

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_pairs: int = 15, ax: Any = None, **kwargs: Any
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
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **kwargs : dict
            For matplotlib's ``barh``.

        Returns
        -------
        ConfusedPairsDisplay
            The display, plotted.
        """
        if hasattr(final_estimator(estimator), "decision_function"):
            found = evaluate(estimator, X, y)
        else:
            found = compare(y, estimator.predict(X))
        return cls._from_evaluation(found, n_pairs).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, n_pairs: int = 15, ax: Any = None, **kwargs: Any
    ) -> ConfusedPairsDisplay:
        """Plot what is confused in predictions from anywhere.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            Labels and predictions.
        n_pairs : int, default=15
            Number of pairs.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **kwargs : dict
            For matplotlib's ``barh``.

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
        n_errors = int((found.true != found.predicted).sum())
        pairs = found.confused_pairs(n_pairs)
        return cls(pairs=pairs, n_errors=n_errors, n_examples=found.n_examples)

    def plot(self, ax: Any = None, **kwargs: Any) -> ConfusedPairsDisplay:
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
        self.ax_ = new_axes(type(self).__name__, ax, figsize=(7, height), layout="constrained")
        self.figure_ = self.ax_.figure
        places = range(len(self.pairs))
        self.bars_ = self.ax_.barh(places, [pair.count for pair in self.pairs], **kwargs)
        names = [_plain(f"{pair.true} → {pair.predicted}") for pair in self.pairs]
        self.ax_.set_yticks(list(places), names)
        self.ax_.bar_label(self.bars_, [f"{pair.share:.0%}" for pair in self.pairs], padding=3)
        self.ax_.margins(x=0.1)
        self.ax_.invert_yaxis()
        self.ax_.set(
            xlabel="examples (and their share of the true class)",
            ylabel="true → predicted",
            title=self._title(),
        )
        return self

    def _title(self) -> str:
        if self.n_errors is None or self.n_examples is None:
            return ""
        return f"{self.n_errors:,} errors in {self.n_examples:,} examples"


def _plain(label: str) -> str:
    """A label as matplotlib shows it literally: a dollar sign would begin a formula."""
    return label.replace("$", r"\$")
