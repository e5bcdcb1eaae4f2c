"""What a solver file fills in, and how the files are found.

A file in ``solvers/`` defines one class ``Solver``, in the manner of benchopt: `set_objective` gets
the problem and may convert the data (not timed), `run` trains from scratch at one setting (timed),
`get_result` gives the weights. Settings go from loose to tight: tolerances, or numbers of epochs.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks import provenance
from benchmarks.datasets import Dataset
from benchmarks.solvers_bench.objective import Objective

TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
EPOCHS = (1, 3, 10, 30, 100)


class BaseSolver:
    """A way to train a model.

    Attributes
    ----------
    name : str
        As in tables; a variant is appended in brackets.
    package : str
        The distribution it comes from; where that is absent, so is the solver, and tables say so.
    objectives : sequence of str
        What it minimises: keys of ``objective.OBJECTIVES``.
    setting : str
        What its settings are called.
    grid : sequence of float
        Its settings, from loose to tight.
    variants : mapping
        Values of each parameter; every combination is a solver of its own.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]
    objectives: ClassVar[Sequence[str]]
    setting: ClassVar[str] = "tol"
    grid: ClassVar[Sequence[float]] = TOLERANCES
    variants: ClassVar[Mapping[str, Sequence[Any]]] = {}
    is_ours: ClassVar[bool] = False

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def __getattr__(self, name: str) -> Any:
        """Parameters of the variant read as attributes."""
        try:
            return self.__dict__["parameters"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def label(self) -> str:
        """The name with the variant's values."""
        texts = [f"{v} threads" if k == "threads" else str(v) for k, v in self.parameters.items()]
        if not texts:
            return self.name
        return f"{self.name} [{', '.join(texts)}]".replace("1 threads", "1 thread")

    @property
    def n_threads(self) -> int:
        """Threads it may use; more than one is timed by the wall clock."""
        return int(self.parameters.get("threads", 1))

    def missing(self) -> str | None:
        """Say why the solver cannot run here, None where it can."""
        try:
            importlib.import_module(self.module)
        except Exception as error:  # a peer built for another NumPy raises anything
            return f"{self.package} is not usable: {type(error).__name__}: {error}".split("\n")[0]
        return None

    def version(self) -> str:
        """The version a figure belongs to; for polymargin, a hash of its sources."""
        if self.is_ours:
            return provenance.package_fingerprint()
        try:
            return version(self.package)
        except PackageNotFoundError:
            return "absent"

    def set_objective(self, data: Dataset, C: float, objective: Objective) -> None:
        """Take the problem and put the data into the solver's own format; not timed."""
        self.X, self.y = plain(data.X_train), data.y_train
        self.C, self.objective, self.n_classes = C, objective, data.n_classes

    def run(self, setting: float) -> None:
        """Train from scratch at one setting; timed."""
        raise NotImplementedError

    def get_result(self) -> dict[str, Any]:
        """Give "coef" (one row per class) and whatever else should be kept, such as "gap"."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Predict class codes."""
        return np.asarray(X @ np.asarray(self.get_result()["coef"], np.float64).T).argmax(axis=1)


class EstimatorSolver(BaseSolver):
    """A scikit-learn classifier: `make` builds it for a setting, `fit` is the run."""

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        raise NotImplementedError

    def run(self, setting: float) -> None:
        """Fit a new classifier."""
        self.estimator = self.make(setting).fit(self.X, self.y)

    def get_result(self) -> dict[str, Any]:
        """Give its `coef_`."""
        return {"coef": self.estimator.coef_}


def plain(X: Any) -> Any:
    """A layout every package reads: arrays as they are, else csr_matrix with 32-bit indices."""
    if not sparse.issparse(X):
        return X
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def all_solvers() -> Iterator[BaseSolver]:
    """Build every solver in every variant, polymargin's first, then by file name."""
    package = importlib.import_module("benchmarks.solvers_bench.solvers")
    names = sorted(
        (info.name for info in pkgutil.iter_modules(package.__path__)),
        key=lambda name: (not name.startswith("polymargin"), name),
    )
    for name in names:
        solver = importlib.import_module(f"{package.__name__}.{name}").Solver
        for values in itertools.product(*solver.variants.values()):
            yield solver(**dict(zip(solver.variants, values, strict=True)))


def solver_files(solver: BaseSolver) -> list[Path]:
    """The files a solver is written in: a figure is measured anew when one of them changes."""
    folder = Path(__file__).resolve().parent
    modules = dict.fromkeys(kind.__module__ for kind in type(solver).__mro__)
    files = [Path(getattr(sys.modules[name], "__file__", None) or "") for name in modules]
    return [file for file in files if file.resolve().is_relative_to(folder)]
