"""The linear multiclass support vector machine on Dask collections."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polymargin.dask.collections import is_frame, is_lazy, map_rows, partitions_of
from polymargin.dask.workers import DaskSource
from polymargin.estimators import LinearMulticlassSVC
from polymargin.estimators.partitioned import PartitionedLinearSVC


def _gives_probabilities(estimator: DaskLinearMulticlassSVC) -> bool:
    return callable(estimator.to_local().predict_proba)  # or its AttributeError says why not


class DaskLinearMulticlassSVC(PartitionedLinearSVC):
    """`LinearMulticlassSVC` for data on the workers of a Dask cluster.

    The same problem, solved to the same certificate; the rows and their dual variables stay with
    the workers, which send sums of the size of the weights, once per round. The model depends on
    how the data are partitioned and on `random_state`, not on the number of workers.

    Parameters
    ----------
    client : distributed.Client, default=None
        The client of the cluster to train on; None means the current one, or, where there is none,
        a cluster of threads in this process that lasts as long as `fit`.
    loss, C, top_k, smoothing, tol, max_iter, fit_intercept, intercept_scaling, class_weight, \
            cost_matrix, warm_start, store_dual, random_state, verbose, solver, stream, checkpoint
        As in :class:`~polymargin.LinearMulticlassSVC`, where passes are rounds. `store_dual` and
        `warm_start` gather the dual variables; a warm start wants the same partitions. A
        `checkpoint` is a file of the client's machine; a fit that goes on from it reaches the same
        tolerance, not the same bits. Where it is given, partitions that are lost with their worker
        begin from it, else from where a warm start began, or from zero.
    n_jobs, memory_limit, probability
        `n_jobs` is not used by `fit`; the others are refused ("softmax" has probabilities).

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, dual_objective_, dual_gap_, n_iter_, history_, \
            dual_coef_, n_features_in_, feature_names_in_
        As in :class:`~polymargin.LinearMulticlassSVC`; examples are in the order of the partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> from polymargin.dask import DaskLinearMulticlassSVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> clf = DaskLinearMulticlassSVC(random_state=0).fit(X, y)
    >>> clf.dual_gap_ <= clf.tol
    True
    >>> clf.predict(X)[:2].compute()
    array([0, 0])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : Dask array, Dask DataFrame or list of delayed partitions
            Training data; partitions are dense, or CSR. Chunk sizes need not be known.
        y : of the same kind and partitions
            Labels. A Dask array of other chunks, or a NumPy array, is cut as X is.
        sample_weight : of the same kind and partitions, default=None
            Weights of the examples, not negative.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return self._fit_on(self._source(X, y, sample_weight))

    @contextmanager
    def _source(self, X: Any, y: Any, sample_weight: Any) -> Iterator[DaskSource]:
        """The partitions, for the time of a fit."""
        parts = partitions_of(X, y, sample_weight)
        with _client(self.client) as client:
            source = DaskSource(client, parts)
            source.named = X._meta if is_frame(X) else None
            try:
                yield source
            finally:
                source.close()

    # --- predictions -----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """Scores as those of `LinearMulticlassSVC`; lazily where X is a Dask collection."""
        if not is_lazy(X):
            return super().decision_function(X)
        width = None if self._model.coef_.shape[0] == 1 else len(self.classes_)
        return map_rows(
            _Asked(self._model, "decision_function"), X, width=width, like=self.coef_[0]
        )

    def predict(self, X: Any) -> Any:
        """Labels; lazily where X is a Dask collection."""
        if not is_lazy(X):
            return super().predict(X)
        return map_rows(_Asked(self._model, "predict"), X, width=None, like=self._model.classes_)

    def predict_top_k(self, X: Any, k: int = 5) -> Any:
        """The k best labels; lazily where X is a Dask collection."""
        if not is_lazy(X):
            return super().predict_top_k(X, k)
        asked = _Asked(self._model, "predict_top_k", k=k)
        asked.of_nothing()  # is k one?
        return map_rows(asked, X, width=k, like=self.classes_)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities; lazily where X is a Dask collection."""
        return self._probabilities(X, "predict_log_proba")

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; lazily where X is a Dask collection."""
        return self._probabilities(X, "predict_proba")

    def _probabilities(self, X: Any, method: str) -> Any:
        asked = _Asked(self._model, method)
        if not is_lazy(X):
            return asked(X)
        return map_rows(asked, X, width=len(self.classes_), like=self.coef_[0])

    @property
    def _model(self) -> LinearMulticlassSVC:
        check_is_fitted(self)
        return self.to_local()

    def to_local(self) -> LinearMulticlassSVC:
        """The plain estimator, fitted if this one is."""
        params = self.get_params(deep=False)
        del params["client"]
        local = LinearMulticlassSVC(**params)
        fitted = {k: v for k, v in vars(self).items() if k not in params and k != "client"}
        local.__dict__.update(fitted)
        return local

    # --- a client can neither be copied nor sent -------------------------------------------------

    def __sklearn_clone__(self) -> Self:
        made = {
            k: clone(v, safe=False) for k, v in self.get_params(deep=False).items() if k != "client"
        }
        return type(self)(**made, client=self.client)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": None}


class _Asked:
    """A method of a model; of no rows, nothing."""

    def __init__(self, model: LinearMulticlassSVC, method: str, **arguments: Any) -> None:
        self.model, self.method, self.arguments = model, method, arguments

    def __call__(self, X: Any) -> NDArray:
        if X.shape[0] == 0:
            return self.of_nothing()
        found: NDArray = getattr(self.model, self.method)(X, **self.arguments)
        return found

    def of_nothing(self) -> NDArray:
        """No rows, of the right shape and type."""
        model = copy.copy(self.model)
        model.__dict__.pop("feature_names_in_", None)  # this row has none
        found: NDArray = getattr(model, self.method)(
            np.zeros((1, model.n_features_in_)), **self.arguments
        )
        return found[:0]


@contextmanager
def _client(given: Client | None) -> Iterator[Client]:
    """The client given, the current one, or one of a cluster that ends with the block."""
    if given is not None:
        yield given
        return
    try:
        current = Client.current()
    except ValueError:
        current = None
    if current is not None:
        yield current
        return
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=os.cpu_count(),
            processes=False,
            dashboard_address=":0",  # no web pages, and no port that somebody else may want
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
