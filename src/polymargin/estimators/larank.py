"""LaRank as a scikit-learn classifier: a kernel machine that learns online."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from polymargin.arrays import Attributes, Matrix, MatrixLike
from polymargin.estimators._base import CERTIFIED, checked_rows, n_threads
from polymargin.estimators._online import (
    LOSS,
    FrozenModel,
    OnlineModel,
    StreamLabels,
    check_unchanged,
    model_array,
)
from polymargin.estimators._parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    CostMatrix,
    margins_of,
    parameter,
    with_parameters,
)
from polymargin.estimators._threads import alone, attributes_of, lock_of, publish, still
from polymargin.estimators.kernel import KernelMachine
from polymargin.kernel_functions import resolve_gamma
from polymargin.losses import Loss, get_loss
from polymargin.problem import KernelProblem
from polymargin.solvers.engines.machine import (
    OPERATIONS,
    LaRank,
    MachineSettings,
)
from polymargin.solvers.engines.patterns import VectorPatterns, patterns_for
from polymargin.solvers.larank import LaRankSolution, solve_larank
from polymargin.solvers.progress import Progress
from polymargin.solvers.stopping import CertifiedDifference, CertifiedGap, StoppingRule

MOST_EPOCHS = 1000  # with tol, unless n_epochs says otherwise
# What a machine is made with: it must not change along a stream.
FIXED = (
    *("C", "kernel", "gamma", "degree", "coef0", "schedule", "operations"),
    *("tau", "kappa", "eta", "cache_size"),
)


@with_parameters
class LaRankClassifier(KernelMachine[LaRankSolution]):
    """Online multiclass support vector machine with kernels (LaRank, Bordes et al. 2007).

    It solves the Crammer-Singer problem without an intercept: minimise ``1/2 ||w||^2 + C sum_i
    max(0, 1 + max_{y != y_i} S(x_i, y) - S(x_i, y_i))`` over ``S(x, y) = <w_y, phi(x)>``. One
    pass over the examples gives nearly the accuracy of the optimum; more of them reach it, to any
    duality gap. Only support patterns are kept, so it learns from streams as well, and classes may
    appear at any time.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser; finite and positive.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, as in ``SVC``. A callable gets two arrays of rows and returns
        the matrix of their kernel values, which must be symmetric in its arguments; it is called
        with few rows at a time. With "precomputed", X holds the kernel values of all pairs.
    gamma : {"scale", "auto"} or float, default="scale"
        Parameter of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features * X.var()), "auto"
        1 / n_features; with `partial_fit`, of the first batch.
    degree : float, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    n_epochs : int, default=None
        Passes over the data in `fit`. None means one without `tol`, and at most 1000 with it.
    tol : float or "C", default=None
        When to stop: at a relative duality gap ``(primal - dual) / primal`` of at most `tol`, or,
        with "C", at a gap ``primal - dual`` of at most `C`, as the paper's LaRankGap. None makes
        `n_epochs` passes and computes no gap.
    schedule : {"deterministic", "adaptive"}, default="deterministic"
        How the operations are chosen: by their increase of the dual per cost. "adaptive" measures
        their time, as the paper does; "deterministic" counts kernel evaluations and gradient
        entries instead, which makes results reproducible.
    operations : tuple of {"process_old", "optimize"}, default=("process_old", "optimize")
        The operations that are performed between new examples.
    tau : float, default=1e-4
        A step is made where the gradient along it exceeds `tau`. With `tol`, it is lowered as
        far as the gap requires.
    kappa : float, default=1e-4
        A coefficient counts as being at its bound when it is closer than ``kappa * C``. With `tol`,
        it is lowered as far as the gap requires.
    eta : float, default=0.05
        Smallest probability of any operation, below 1/3.
    shuffle : bool, default=True
        Whether `fit` takes the examples in a random order in every epoch. `partial_fit` takes them
        as they come.
    cost_matrix : array-like of shape (n_classes, n_classes), dict or DataFrame, default=None
        Costs between classes, as in :class:`LinearMulticlassSVC`: the paper's variable margins. An
        array needs all classes to be known, with `partial_fit` from its first call on.
    cache_size : float, default=200
        Megabytes for kernel values. Those of p support patterns with each other take 4 p^2 bytes in
        float32; what does not fit is computed again when it is needed, which takes long.
    random_state : int, RandomState instance or None, default=None
        Determines the order of the examples and the choice of operations and patterns.
    n_jobs : int, default=None
        Number of threads of predictions and duality gaps; None means 1, and -1 all cores.
    verbose : int, default=0
        1: a bar on a terminal or in a notebook, elsewhere a line per epoch. 2: lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    support_ : ndarray of shape (n_support,)
        Numbers of the support patterns: rows of X, or positions in the stream.
    support_vectors_ : array or csr_array of shape (n_support, n_features)
        The support patterns; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_classes, n_support), or (1, n_support) for two classes
        Coefficients: the score of class y is ``sum_i dual_coef_[y, i] k(x_i, x)``. For two classes,
        the second row minus the first, so that a positive score means ``classes_[1]``.
    n_support_ : ndarray of shape (n_classes,)
        Number of support patterns of each class.
    dual_objective_ : float
        The dual objective.
    objective_ : float
        With `tol`, the primal objective; NaN without.
    dual_gap_ : float
        With `tol`, the relative gap ``(objective_ - dual_objective_) / objective_``; NaN without.
    n_iter_ : int
        Number of epochs, or of calls of `partial_fit`.
    n_kernel_evaluations_ : int
        Kernel values computed in training, those for duality gaps left out.
    n_gap_kernel_evaluations_ : int
        Kernel values computed for duality gaps.
    n_argmax_ : int
        How often the best class of an example was determined.
    n_operations_ : dict
        Number of operations: "process_new", "process_old" and "optimize", and those of each that
        made a step: "process_new_steps", ...
    gamma_ : float
        The value of `gamma` in use.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The features seen during fit; their names, if X has names that are all strings.

    See Also
    --------
    LinearMulticlassSVC : Linear models, more losses, weights.

    Notes
    -----
    There are no sample weights: a machine that keeps only the support patterns of a stream has no
    use for the weights of the others.

    Ctrl-C during training leaves the model as it is at that moment in the fitted attributes before
    KeyboardInterrupt goes on to the caller.

    References
    ----------
    A. Bordes, L. Bottou, P. Gallinari and J. Weston. Solving multiclass support vector machines
    with LaRank. ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LaRankClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LaRankClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.score(X, y) > 0.9
    True
    """

    C: float = parameter(POSITIVE, default=1.0)
    n_epochs: int | None = parameter(COUNT, None, default=None)
    tol: Any = parameter(NOT_NEGATIVE, StrOptions({"C"}), None, default=None)
    schedule: str = parameter(StrOptions({"deterministic", "adaptive"}), default="deterministic")
    operations: Sequence[str] = parameter(tuple, list, default=("process_old", "optimize"))
    tau: float = parameter(NOT_NEGATIVE, default=1e-4)
    kappa: float = parameter(Interval(Real, 0.0, 1.0, closed="left"), default=1e-4)
    eta: float = parameter(Interval(Real, 0.0, 1 / 3, closed="left"), default=0.05)
    shuffle: bool = parameter("boolean", default=True)
    cost_matrix: CostMatrix = parameter("array-like", dict, None, default=None)

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike) -> LaRankClassifier:
        """Train the model afresh.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or kernel values of all pairs. float32 and float64 are kept.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.

        Returns
        -------
        LaRankClassifier
            The fitted estimator.
        """
        return self._fit(X, y, None)

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None
    ) -> LaRankClassifier:
        """Learn from more examples, in the order given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; other than for support patterns, nothing of it is kept.
        y : array-like of shape (n_samples,)
            Labels, among them new ones.
        classes : array-like, default=None
            Labels that are to count as known from now on. A class without examples so far can
            only be a wrong answer.

        Returns
        -------
        LaRankClassifier
            The estimator. Along a stream the parameters must not change, but for those of `fit`
            alone (`n_epochs`, `tol`, `shuffle`), `random_state`, `n_jobs` and `verbose`.
        """
        if self._precomputed:
            raise ValueError(
                "partial_fit cannot be used with kernel='precomputed': kernel values of the new "
                "examples with earlier ones are needed. Use fit, or a callable kernel."
            )
        work = still(self)
        before = dict(vars(work))
        go_on = hasattr(work, "_model")
        if go_on:
            check_unchanged(work._fixed, work._fixed_parameters())
        X, y = work._validate_training_data(X, y, reset=not go_on)
        X = checked_rows(work, X).matrix
        labels = work._model.labels.copy() if go_on else StreamLabels()
        if classes is not None:
            labels.add(np.ravel(classes))
        labels.add(y)
        if go_on:
            machine = work._model.machine
        else:
            work.gamma_ = resolve_gamma(work.gamma, X)
            machine = work._new_machine(X, check_random_state(work.random_state))

        def show() -> None:
            work._set_stream(machine, labels, n_calls=before.get("n_iter_", 0) + 1)
            publish(self, work, before)

        with machine.lock:
            if go_on and machine.n_classes > len(work._model.labels.by_code):
                raise ValueError(
                    "The machine of this classifier has learned other classes with a shallow copy "
                    "of it: make copies with copy.deepcopy or pickle."
                )
            work._set_costs(machine, labels)
            codes = labels.encode(y)
            batch = _like_stored(X, machine)
            try:
                if go_on:
                    show()  # labels are known before the machine learns their codes
                machine.work_on(
                    batch,
                    len(labels.by_code),
                    lambda: machine.epoch(np.arange(len(codes)), codes),
                )
                show()
            except MemoryError:
                raise  # the machine may not be whole
            except BaseException as error:
                if go_on or isinstance(error, KeyboardInterrupt):  # the examples before it count
                    show()
                raise
        return self

    # --- what the template asks for ---

    class_weight = None
    warm_start = False
    _fitted_names = (
        *CERTIFIED,
        "n_kernel_evaluations_",
        "n_gap_kernel_evaluations_",
        "n_argmax_",
        "n_operations_",
        "_model",
        "_fixed",
    )
    _unit_of_work = "epochs"
    _limit = "n_epochs"

    @property
    def _most_passes(self) -> int:
        return int(self.n_epochs or (1 if self.tol is None else MOST_EPOCHS))

    def _loss(self, classes: ArrayLike | None = None) -> Loss:
        margins = None if classes is None else margins_of(self.cost_matrix, classes)
        return LOSS if margins is None else get_loss(LOSS.name, margins=margins)

    def _solve(
        self, problem: KernelProblem, start: LaRankSolution | None, progress: Progress | None
    ) -> LaRankSolution:
        random = check_random_state(self.random_state)
        machine = self._new_machine(problem.kernel.X, random)
        machine.set_costs(None if problem.loss.margins is None else problem.loss.margins.delta)
        return solve_larank(
            machine,
            problem,
            self._orders(problem.n_examples, random),
            rule=self._rule(),
            max_epochs=self._most_passes,
            threads=n_threads(self.n_jobs),
            verbose=int(self.verbose),
            progress=progress,
        )

    def _orders(self, n: int, random: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
        while True:
            yield random.permutation(n) if self.shuffle else np.arange(n)

    def _rule(self) -> StoppingRule | None:
        if self.tol is None:
            return None
        return CertifiedDifference(self.C) if self.tol == "C" else CertifiedGap(self.tol)

    def _attributes(
        self, classes: NDArray, problem: KernelProblem, solution: LaRankSolution
    ) -> Attributes:
        found = self._of_machine(solution.machine, StreamLabels(classes))
        return found | {"n_gap_kernel_evaluations_": solution.n_gap_evaluations}

    def _of_machine(self, machine: LaRank, labels: StreamLabels) -> Attributes:
        counts = machine.counts()
        return {
            "_model": OnlineModel(machine, labels),
            "_fixed": self._fixed_parameters(),
            "n_argmax_": counts.pop("arg_max"),
            "n_operations_": counts,
            "n_kernel_evaluations_": machine.patterns.n_evaluations,
        }

    def _set_stream(self, machine: LaRank, labels: StreamLabels, n_calls: int) -> None:
        nothing = dict.fromkeys(("objective_", "dual_gap_"), np.nan)
        self.__dict__.pop("history_", None)
        self.__dict__ |= self._of_machine(machine, labels) | nothing
        self.classes_ = labels.by_code[labels.sorted_codes()]
        self.dual_objective_ = machine.dual
        self.n_gap_kernel_evaluations_ = 0
        self.n_iter_ = n_calls

    def _fixed_parameters(self) -> Attributes:
        return {name: getattr(self, name) for name in FIXED}

    def _new_machine(self, X: Matrix, random: np.random.RandomState) -> LaRank:
        unknown = [name for name in self.operations if name not in OPERATIONS[1:]]
        if unknown:
            raise ValueError(
                f"operations may name {' and '.join(map(repr, OPERATIONS[1:]))}, got {unknown}."
            )
        settings = MachineSettings(
            C=float(self.C),
            tau=float(self.tau),
            kappa=float(self.kappa),
            eta=float(self.eta),
            operations=tuple(self.operations),
            measure_time=self.schedule == "adaptive",
            cache_size=float(self.cache_size),
        )
        function, cost = None, 1.0
        if not self._precomputed:
            function = self._kernel_function()
            # roughly what a kernel value costs beside a gradient entry, as measured
            cost = 8.0 + (X.size if isinstance(X, np.ndarray) else X.nnz) / X.shape[0] / 4
        seed = random.randint(np.iinfo(np.int32).max)
        return LaRank(settings, patterns_for(function, X), X.dtype, cost, seed)

    def _set_costs(self, machine: LaRank, labels: StreamLabels) -> None:
        """Give a machine the costs of all classes known; those it has learned with stay."""
        margins, n = self._loss(labels.by_code).margins, machine.n_classes
        n_now = len(labels.by_code)
        plain = 1.0 - np.eye(max(n, n_now))
        now = plain if margins is None else margins.delta
        before = plain if machine.costs is None else machine.costs
        if not np.array_equal(before[:n, :n], now[:n, :n]):
            raise ValueError(
                "cost_matrix must not change along a stream: set back what was changed, or begin "
                "another one with a clone of the estimator."
            )
        machine.set_costs(None if margins is None else margins.delta)

    def __getstate__(self) -> Attributes:
        with lock_of(self):  # whoever trains it ends the batch first
            state = attributes_of(self)
            if "_model" in state:
                state["_model"] = FrozenModel(state["_model"])
            return state

    def __setstate__(self, state: Attributes) -> None:
        model = state.get("_model")
        if isinstance(model, FrozenModel):  # not every format asks it what it stands for
            state = state | {"_model": model.thawed()}
        super().__setstate__(state)

    def __copy__(self) -> LaRankClassifier:
        return still(self)

    def learned(self) -> tuple[LaRank, NDArray]:
        """The machine that goes on learning, and the labels that its codes 0, 1, ... stand for."""
        return self._model.machine, self._model.labels.by_code

    def go_on_from(self, machine: LaRank, labels: NDArray) -> None:
        """Take over what :meth:`learned` gives."""
        margins = self._loss(labels).margins
        machine.set_costs(None if margins is None else margins.delta)
        self._model = OnlineModel(machine, StreamLabels(labels))
        self._fixed = self._fixed_parameters()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.schedule == "adaptive"
        return tags

    support_ = model_array("support")
    support_vectors_ = model_array("vectors")
    dual_coef_ = model_array("dual_coef")
    n_support_ = model_array("n_support")


def _like_stored(X: Matrix, machine: LaRank) -> Matrix:
    """Give the batch in the type and layout of the machine's first one."""
    X = X.astype(machine.dtype, copy=False)
    assert isinstance(machine.patterns, VectorPatterns)
    if machine.patterns.is_sparse:
        return sparse.csr_array(X)
    return X if isinstance(X, np.ndarray) else X.toarray()
