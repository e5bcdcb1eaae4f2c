"""The linear machine on partitions: labels, weights and types agreed on, then rounds.

Every partition is looked at on its own, where it is: its size, its type, and how much each of its
labels weighs. From these few numbers the classes and costs of all follow; labels and rows stay
where they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_array, column_or_1d

from polymargin.arrays import Attributes, Matrix, precisions
from polymargin.data import as_rows
from polymargin.estimators._base import Prepared
from polymargin.estimators._parameters import parameter, with_parameters
from polymargin.estimators._target import EncodedTarget, class_weights, costs, too_few_classes
from polymargin.estimators._threads import alone
from polymargin.estimators.compat import check_sample_weight
from polymargin.estimators.linear import LinearMulticlassSVC, check_overflow
from polymargin.solvers import Checkpoint, DualSolver
from polymargin.solvers.engines.newton_rounds import is_for as makes_newton_rounds
from polymargin.solvers.engines.part import Common, Part
from polymargin.solvers.engines.partitions import LocalPartitions, Partitions
from polymargin.solvers.partitioned import (
    PartitionedSolution,
    Strengths,
    check_settings,
    duals_for,
    solve_partitions,
)
from polymargin.solvers.progress import Progress
from polymargin.solvers.settings import draw_seed


class Chunk(NamedTuple):
    """Data of a partition, checked but for its values."""

    number: int
    X: Matrix
    y: NDArray
    weight: NDArray[np.float64]


class Summary(NamedTuple):
    """What the others must know of a partition."""

    n: int
    d: int
    dtype: np.dtype
    labels: NDArray
    totals: NDArray[np.float64]  # weight of each label
    n_weighted: int
    square: float  # sum of all ||x||^2
    dense: bool


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Errors of the data say in which partition; partitions are counted from 0."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if str(error).startswith("Partition "):
            raise
        raise type(error)(f"Partition {number}: {error}") from error


def checked_chunk(number: int, X: Any, y: Any, weight: Any = None) -> Chunk:
    """Data as they come, as rows, labels and weights; empty partitions are fine."""
    with naming(number):
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=precisions(X),
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
        y = column_or_1d(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)} labels.")
        if not len(y):
            return Chunk(number, X, y, np.empty(0))
        check_classification_targets(y)
        return Chunk(number, X, y, check_sample_weight(weight, X, allow_all_zero_weights=True))


def summary_of(chunk: Chunk) -> Summary:
    """What the others must know of it."""
    labels, codes = np.unique(chunk.y, return_inverse=True)
    totals: Any = np.bincount(codes, weights=chunk.weight, minlength=len(labels))
    values: Any = chunk.X.data if sparse.issparse(chunk.X) else chunk.X.reshape(-1)
    square = float(np.vdot(values, values))
    if not np.isfinite(square):
        with naming(chunk.number):
            as_rows(chunk.X)  # says why, or that it is only the sum
        square = float(np.finfo(np.float32).max)
    return Summary(
        chunk.X.shape[0],
        chunk.X.shape[1],
        np.dtype(chunk.X.dtype),
        labels,
        totals,
        int(np.count_nonzero(chunk.weight)),
        square,
        not sparse.issparse(chunk.X),
    )


@dataclass(frozen=True)
class Encoding:
    """What labels and weights are to the solver, for all partitions."""

    labels: NDArray
    weights: NDArray[np.float64]  # of the labels
    classes: NDArray  # those that have an example of positive weight
    C: float

    def of(self, chunk: Chunk) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Codes and costs of a partition's examples."""
        at = np.searchsorted(self.labels, chunk.y)
        c = costs(self.C, chunk.weight, self.weights[at])
        codes = np.where(c > 0, np.searchsorted(self.classes, chunk.y), 0)
        return codes.astype(np.int32), c


def make_part(chunk: Chunk, encoding: Encoding, common: Common) -> Part:
    """The partition that a solver works on."""
    with naming(chunk.number):
        codes, c = encoding.of(chunk)
        X = chunk.X.astype(common.dtype, copy=False)
        return Part(chunk.number, X, codes, c, common)


def joint_labels(summaries: list[Summary]) -> tuple[NDArray, NDArray[np.float64]]:
    """All labels, sorted, and how much each weighs."""
    kinds: dict[str, int] = {}
    for number, one in enumerate(summaries):
        if one.n:
            kind = "text" if one.labels.dtype.kind in "OUST" else "numbers"
            kinds.setdefault(kind, number)
    if len(kinds) > 1:
        raise ValueError(
            f"Labels are text in partition {kinds['text']}, but numbers in partition "
            f"{kinds['numbers']}: give all of one type."
        )
    found = [one for one in summaries if one.n]
    if not found:
        raise ValueError("All partitions are empty: there is nothing to learn from.")
    labels, codes = np.unique(np.concatenate([s.labels for s in found]), return_inverse=True)
    weights = np.concatenate([s.totals for s in found])
    totals: Any = np.bincount(codes, weights=weights, minlength=len(labels))
    return labels, totals


def joint_shape(summaries: list[Summary]) -> tuple[int, np.dtype]:
    """The number of features, and the type that holds all values."""
    first = next(i for i, one in enumerate(summaries) if one.n)
    for number, one in enumerate(summaries):
        if one.n and one.d != summaries[first].d:
            raise ValueError(
                f"Partition {number} has {one.d} features, but partition {first} has "
                f"{summaries[first].d}."
            )
    return summaries[first].d, np.result_type(*(one.dtype for one in summaries if one.n))


class Source(Partitions):
    """Partitions that can still be looked at before they are made into parts."""

    named: Any = None  # a frame of any rows, where the features have names

    @abstractmethod
    def look(self) -> list[Summary]:
        """What there is in each."""

    @abstractmethod
    def hold(self, make: Callable[[Chunk], Part]) -> None:
        """Make the parts; from now on they answer."""


class LocalSource(LocalPartitions, Source):
    """Partitions in this process."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks = chunks
        self.n = len(chunks)

    def look(self) -> list[Summary]:
        """What there is in each."""
        return [summary_of(chunk) for chunk in self.chunks]

    def hold(self, make: Callable[[Chunk], Part]) -> None:
        """Make the parts; from now on they answer."""
        self.parts = [make(chunk) for chunk in self.chunks]


@dataclass(frozen=True)
class PartitionedProblem:
    """A problem whose examples are elsewhere."""

    source: Source
    encoding: Encoding
    common: Common
    strengths: Strengths


@with_parameters
class PartitionedLinearSVC(LinearMulticlassSVC):
    """`LinearMulticlassSVC` on a `Source`; `client` is for those whose source is elsewhere."""

    client: Any = parameter(HasMethods(["submit", "gather"]), None, default=None)

    _unit_of_work = "rounds"

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_on(self, source: AbstractContextManager[Source]) -> Self:
        with source as parts:
            return self._fit(parts, None, None)

    def _prepare(  # type: ignore[override]
        self, X: Source, y: None, sample_weight: None, *, C: float
    ) -> Prepared[Any]:
        settings = DualSolver() if self.solver is None else self.solver
        if not isinstance(settings, DualSolver):
            raise ValueError(f"Partitioned data need a DualSolver as solver, got {settings!r}.")
        loss = self._loss()
        check_settings(settings, loss)
        if self.memory_limit is not None:
            raise ValueError(
                "memory_limit is not for partitioned data: make the partitions smaller, or limit "
                "the memory of the workers."
            )
        if self._needs_temperature:
            raise ValueError(
                "probability=True is not for partitioned data: its folds need the rows in one "
                "place. Use loss='softmax', which has probabilities."
            )
        summaries = X.look()
        labels, totals = joint_labels(summaries)
        self.n_features_in_, dtype = joint_shape(summaries)
        _check_feature_names(self, np.empty((0, 0)) if X.named is None else X.named, reset=True)
        weights = class_weights(self.class_weight, labels, np.arange(len(labels)), totals)
        kept = (weights > 0) & (totals > 0)
        if np.count_nonzero(kept) < 2:
            raise ValueError(too_few_classes(labels, np.flatnonzero(kept)))
        encoding = Encoding(labels, weights, labels[kept], C)
        n_classes = int(np.count_nonzero(kept))
        loss = self._loss(encoding.classes)
        loss.check_n_classes(n_classes)
        common = Common(
            loss=loss,
            n_classes=n_classes,
            n_features=self.n_features_in_,
            dtype=dtype,
            intercept_scaling=self._constant_feature,
            constant=self._constant_feature,
            settings=settings,
            seed=draw_seed(self.random_state),
        )
        dense, largest = all(s.dense for s in summaries if s.n), max(s.n for s in summaries)
        strengths = Strengths.of(
            common,
            n_busy=sum(one.n_weighted > 0 for one in summaries),
            per_class=sum(one.n_weighted for one in summaries) / n_classes,
            mean_square=sum(one.square for one in summaries) / sum(one.n for one in summaries),
            newton=makes_newton_rounds(common, dense=dense, largest=largest),
        )
        common = replace(common, constant=strengths.constant)
        X.hold(partial(make_part, encoding=encoding, common=common))
        nothing = np.empty(0)
        target = EncodedTarget(encoding.classes, nothing, nothing)
        problem = PartitionedProblem(X, encoding, common, strengths)
        return Prepared(X, y, nothing, False, target, problem)  # type: ignore[arg-type]

    def _start_for(  # type: ignore[override]
        self, problem: PartitionedProblem
    ) -> list[sparse.csr_array] | None:
        kept = getattr(self, "_warm_start_state", None)
        if not self.warm_start or not isinstance(kept, PartitionedSolution):
            return None
        return duals_for(problem.source, problem.common, kept)

    def _solve(  # type: ignore[override]
        self,
        problem: PartitionedProblem,
        start: list[sparse.csr_array] | None,
        progress: Progress | None,
    ) -> PartitionedSolution:
        common = problem.common
        solution = solve_partitions(
            problem.source,
            common,
            problem.strengths,
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=int(self.verbose),
            keep_dual=self.store_dual,
            start=start,
            hold_dual=self.warm_start,
            random_state=None if self.random_state is None else common.seed,
            progress=progress,
            checkpoint=None if self.checkpoint is None else Checkpoint.of(self.checkpoint),
        )
        check_overflow(solution)
        return solution

    def _attributes(  # type: ignore[override]
        self, classes: NDArray, problem: PartitionedProblem, solution: PartitionedSolution
    ) -> Attributes:
        fold = problem.common.loss.fold
        found = {"coef_": fold(solution.coef), "intercept_": fold(solution.intercept)}
        if self.store_dual:
            found["dual_coef_"] = fold(solution.dual_coef().T.tocsr())
        return found
