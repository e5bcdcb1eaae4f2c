"""``partial_fit``: labels, weights and late classes of a stream, around a `StreamModel`.

The columns of the model are in the order in which the classes appeared; what the estimator shows is
sorted by label. Coefficients are made when somebody asks for them, so that a batch of one example
does not cost a copy of the weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from polymargin.arrays import Attributes, Matrix, MatrixLike
from polymargin.data import Rows, as_rows
from polymargin.estimators._base import checked_rows
from polymargin.estimators._online import StreamLabels, check_unchanged
from polymargin.estimators._predictions import LinearPredictionMixin
from polymargin.estimators._target import costs, weights_by_label
from polymargin.estimators._threads import alone, lock_of, publish, still
from polymargin.estimators.compat import check_sample_weight
from polymargin.losses import Loss
from polymargin.solvers.settings import draw_seed
from polymargin.solvers.stream import StreamModel, StreamSolver

Examples = tuple[Rows, NDArray[np.int32], NDArray[np.float64]]

PLAIN = (np.ndarray, sparse.csr_array, sparse.csr_matrix)


@dataclass(eq=False)
class Stream:
    """What an estimator keeps between two calls of `partial_fit`.

    Labels are known before they have their columns, and only those that have are the stream's: so
    it is whole whenever Ctrl-C comes, or another thread looks.
    """

    model: StreamModel
    known: StreamLabels  # label j has the column j + reserved of the model, once there is one
    # 1 where column 0 is that of a class that never appears: with one-vs-rest such a class learns
    # too, and a class that appears later begins as a copy of it. Else 0.
    reserved: int
    closed: bool  # the classes were announced, so that no other may appear
    fixed: Attributes  # the parameters that must not change along a stream
    learning: bool = False  # in a call that is not over
    _shown: tuple[object, NDArray, NDArray] | None = None

    @property
    def labels(self) -> StreamLabels:
        """Those that have columns."""
        return StreamLabels(self.known.by_code[: self.model.n_columns - self.reserved])

    def add_column(self) -> None:
        """A column for a class that appears now."""
        self.model.add_class(0 if self.reserved else None)

    def _columns(self, n_labels: int) -> NDArray[np.intp]:
        """The columns in the order of the sorted labels, of which there were so many."""
        return StreamLabels(self.known.by_code[:n_labels]).sorted_codes() + self.reserved

    def fold(self, by_class: NDArray) -> NDArray:
        """Sorted columns per class; for two classes one that is positive for the second."""
        return self.model.loss.fold(by_class.T).T

    def shown(self, n_labels: int) -> tuple[NDArray, NDArray]:
        """``coef_`` and ``intercept_`` of the first labels."""
        moment = (n_labels, self.model.n_columns, self.model.n_seen)
        if self._shown is not None and self._shown[0] == moment:
            return self._shown[1:]
        W = self.fold(self.model.weights()[:, self._columns(n_labels)])
        d = self.model.n_features
        intercept = np.zeros(W.shape[1], W.dtype)
        if self.model.intercept_scaling:
            intercept = W[d] * W.dtype.type(self.model.intercept_scaling)
        found = np.ascontiguousarray(W[:d].T), intercept
        self._shown = (moment, *found)  # if it was another moment, nobody will take it for this one
        return found

    def scores(self, X: Matrix, n_labels: int) -> NDArray:
        """The decision function of the first labels."""
        scores = self.fold(self.model.scores(as_rows(X))[:, self._columns(n_labels)])
        return scores.ravel() if n_labels == 2 else scores

    def __getstate__(self) -> Attributes:
        # in this order: another thread may learn, and what is known may be more than has columns
        state = {"closed": self.closed, "model": self.model.__getstate__(), "known": self.known}
        return state | {"reserved": self.reserved, "fixed": self.fixed}

    def __setstate__(self, state: Attributes) -> None:
        model = StreamModel.__new__(StreamModel)
        model.__setstate__(state["model"])
        Stream.__init__(self, **state | {"model": model})


class PartialFitMixin(LinearPredictionMixin):
    """`partial_fit` for a linear classifier."""

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Learn from more examples, one exact step each, in the order given.

        Nothing of the examples is kept (but for a reservoir, see `StreamSolver`). The same
        sequence of examples gives the same model, whatever the batches it comes in.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data. The first batch fixes the number of features and the dtype of the weights.
        y : array-like of shape (n_samples,)
            Labels. Without `classes`, new ones may appear at any time: such a class begins with
            zero weights; with "one_vs_rest", with those of a class that has been a negative in
            all examples so far.
        classes : array-like, default=None
            All labels of the stream, in the first call or later; no other may then follow. Later
            calls may repeat it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, not negative; an example of weight zero counts as absent.

        Returns
        -------
        LinearMulticlassSVC
            The estimator. After `fit`, the stream goes on from its coefficients. `C`,
            `class_weight` and `cost_matrix` may change between calls; the loss, the intercept and
            `stream` may not. A `cost_matrix` that is an array needs `classes`; one by label does
            not.
        """
        work = still(self)
        before = dict(vars(work))
        stream: Stream | None = before.get("_stream")
        with lock_of(self if stream is None else stream):  # a shallow copy may have it too
            _refuse_to_nest(stream)
            batch = work._prepare_batch(X, y, classes, sample_weight)
            self._learn_batch(work, before, *batch)
        return self

    def _prepare_batch(
        self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Stream, StreamLabels, Loss, bool, list[int], Examples]:
        """Everything that can be wrong with the input is found here; the stream does not change.

        Called on a copy, which takes the features' number and names.
        """
        goes_on = "classes_" in vars(self)
        if not (goes_on and self._is_plain(X, y)):
            X, y = self._validate_training_data(
                X, y, reset=not goes_on, check_labels=_check_label_type
            )
        stream: Stream | None = vars(self).get("_stream")
        if stream is None:
            stream = self._new_stream(X, goes_on, closed=classes is not None)
        else:
            check_unchanged(stream.fixed, self._fixed_parameters())
        rows = checked_rows(self, X.astype(stream.model.dtype, copy=False))
        if not (rows.squared_norms < np.finfo(rows.dtype).max).all():
            raise ValueError("X has values whose squares overflow: scale the features.")
        c = _costs(X, y, self.C, self.class_weight, sample_weight)
        labels, cuts = _merge_labels(stream, y, c, classes)
        codes = np.zeros(len(y), np.int32)
        codes[c > 0] = labels.encode(y[c > 0]) + stream.reserved
        closes = stream.closed or classes is not None
        return stream, labels, self._loss(labels.by_code), closes, cuts, (rows, codes, c)

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether a later batch is arrays in the form compiled code wants.

        This is what `validate_data` would find, in a tenth of its time: small batches are common.
        """
        if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biuU":
            return False
        if type(X) not in PLAIN or X.ndim != 2 or X.dtype not in (np.float32, np.float64):
            return False
        if X.shape != (len(y), self.n_features_in_) or len(y) == 0:
            return False
        named = "feature_names_in_" in vars(self)
        return not named and (sparse.issparse(X) or bool(X.flags.c_contiguous))

    def _learn_batch(
        self,
        work: PartialFitMixin,
        before: Attributes,
        stream: Stream,
        labels: StreamLabels,
        loss: Loss,
        closes: bool,
        cuts: list[int],
        examples: Examples,
    ) -> None:
        """Learn the parts of a batch between the first appearances of new classes."""

        def show() -> None:
            work._set_stream(stream)
            publish(self, work, before)

        if "_stream" in before and "coef_" in before:
            show()  # what `sparsify` left of earlier weights goes before there are others
        stream.learning = True
        try:
            stream.known = labels
            stream.model.set_loss(loss)
            while stream.model.n_columns < len(labels.by_code) - len(cuts) + stream.reserved:
                stream.add_column()  # announced
            stream.closed = closes
            for part, (first, last) in enumerate(pairwise([0, *cuts, len(examples[1])])):
                if part > 0:
                    stream.add_column()
                stream.model.learn(*examples, first, last)
            show()
        except BaseException:
            if "_stream" in before or stream.model.n_seen:
                show()  # after Ctrl-C the examples before it count
            raise
        finally:
            stream.learning = False

    def _fixed_parameters(self) -> Attributes:
        settings = StreamSolver() if self.stream is None else self.stream
        return {
            "loss, top_k and smoothing": self._loss(),
            "fit_intercept and intercept_scaling": self._constant_feature,
            "stream": settings.get_params(),
        }

    def _new_stream(self, X: Matrix, goes_on: bool, *, closed: bool) -> Stream:
        """A stream that begins here, from nothing or from what `fit` found."""
        settings = StreamSolver() if self.stream is None else self.stream
        settings.check()
        loss = self._loss()
        seed = draw_seed(self.random_state)
        dtype = self.coef_.dtype if goes_on else X.dtype
        model = StreamModel(settings, loss, X.shape[1], dtype, self._constant_feature, seed)
        stream = Stream(model, StreamLabels(), 0, False, self._fixed_parameters())
        if not loss.coupled and not closed:
            stream.reserved = 1
            model.add_class()
        if goes_on:
            stream.known.add(self.classes_)
            coef = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
            weights = (coef, self.intercept_)
            if len(self.classes_) == 2:
                weights = loss.unfold(coef), loss.unfold(self.intercept_)
            model.set_weights(*weights)
        return stream

    def _set_stream(self, stream: Stream) -> None:
        for name in self._stale_names():
            self.__dict__.pop(name, None)
        self._stream, labels = stream, stream.labels
        self.classes_ = labels.by_code[labels.sorted_codes()]
        self.n_samples_seen_ = stream.model.n_seen
        self.n_iter_ = 1

    def __getattr__(self, name: str) -> Any:
        stream: Stream | None = vars(self).get("_stream")
        if name in ("coef_", "intercept_") and stream is not None:
            return stream.shown(len(self.classes_))[name == "intercept_"]
        if hasattr(type(self), name):  # a method that is not available says why
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _scores(self, X: MatrixLike) -> NDArray:
        stream: Stream | None = vars(self).get("_stream")
        if stream is None:
            scores: NDArray = super()._scores(X)
            return scores
        X = validate_data(
            self, X, accept_sparse="csr", dtype=stream.model.dtype, order="C", reset=False
        )
        return stream.scores(X, len(self.classes_))


def _refuse_to_nest(stream: Stream | None) -> None:
    """Refuse a handler of signals, say, that learns in the middle of learning."""
    if stream is not None and stream.learning:
        raise RuntimeError(
            "partial_fit was called in the middle of another partial_fit of this classifier, in "
            "the same thread: wait until that has returned."
        )


def _check_label_type(y: NDArray) -> None:
    """As scikit-learn's check, without its warning of many classes among few examples."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(y)


def _costs(
    X: Matrix,
    y: NDArray,
    C: float,
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """``c_i = C * sample_weight_i * class_weight_{y_i}``."""
    if isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs all labels at once and cannot be used with partial_fit: "
            "give the weights as a dict."
        )
    weight = check_sample_weight(sample_weight, X, allow_all_zero_weights=True)
    if class_weight is None:
        return costs(float(C), weight, np.ones(len(y)))
    labels, codes = np.unique(y, return_inverse=True)
    return costs(float(C), weight, weights_by_label(class_weight, labels)[codes])


def _merge_labels(
    stream: Stream, y: NDArray, c: NDArray[np.float64], classes: ArrayLike | None
) -> tuple[StreamLabels, list[int]]:
    """The labels after a batch, and where in it new ones appear that were not announced."""
    labels = stream.labels.copy()
    if classes is not None:
        announced = np.unique(np.ravel(np.asarray(classes)))
        lost = labels.missing(announced) if stream.closed else announced[:0]
        lacking = labels.by_code[~np.isin(labels.by_code, announced)]
        if len(lost) or len(lacking):
            raise ValueError(
                f"classes={announced.tolist()} is not the set of classes of this stream, "
                f"{np.sort(labels.by_code).tolist()}: "
                + ("repeat it or leave it out." if stream.closed else "it must contain them.")
            )
        labels.add(announced)
    labels.check_type(y)
    present = np.flatnonzero(c > 0)
    if classes is not None or stream.closed:
        unknown = labels.missing(y[present])
        if len(unknown):
            raise ValueError(
                f"y contains labels that were not announced: {unknown.tolist()}. The classes of "
                f"this stream are {np.sort(labels.by_code).tolist()}; for classes that appear "
                "later, leave classes out from the beginning."
            )
        return labels, []
    cuts = present[labels.add_in_order(y[present])]
    if len(labels.by_code) == 0:
        raise ValueError("The first examples of a stream must not all have weight zero.")
    return labels, cuts.tolist()
