"""Parameters of the estimators: what each is called, its default, and what scikit-learn checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from polymargin.costs import Costs, costs_for
from polymargin.estimators._hints import with_hints
from polymargin.estimators._target import ClassWeight
from polymargin.kernel_functions import KERNELS, Kernel
from polymargin.losses import LOSSES, NAMES_ELSEWHERE, Loss, Margins, check_takes_costs, get_loss
from polymargin.solvers.settings import RandomState

POSITIVE = Interval(Real, 0.0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")

CostMatrix: TypeAlias = Costs | None

T = TypeVar("T", bound="Parameters")
Default = TypeVar("Default")


def margins_of(cost_matrix: CostMatrix, classes: ArrayLike) -> Margins | None:
    """The margins that costs demand; None where they are all 1."""
    if cost_matrix is None:
        return None
    labels = np.asarray(classes)
    order = np.argsort(labels)  # a stream has its classes in the order of their appearance
    place = np.argsort(order)
    return Margins.of(costs_for(cost_matrix, labels[order])[np.ix_(place, place)])


def parameter(*constraints: object, default: Default) -> Default:
    """A parameter; the constraints are those of scikit-learn's ``_parameter_constraints``."""
    made: Default = field(default=default, metadata={"constraints": list(constraints)})
    return made


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def with_parameters(cls: type[T]) -> type[T]:
    """Give a class a constructor with its parameters and those of its bases, by keyword."""
    made = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    made.__init__ = with_hints(made.__init__)  # type: ignore[method-assign]
    made._parameter_constraints = {one.name: one.metadata["constraints"] for one in fields(made)}
    return made


@with_parameters
class Parameters:
    """Those of every estimator."""

    _parameter_constraints: ClassVar[dict[str, list[object]]]
    random_state: RandomState = parameter("random_state", default=None)
    n_jobs: int | None = parameter(Integral, None, default=None)
    verbose: int = parameter("verbose", default=0)


class _LossName(StrOptions):  # type: ignore[misc]
    """The name of a loss; the names that other programs have are refused with a hint."""

    def is_satisfied_by(self, val: object) -> bool:
        """Whether it is one of ours."""
        if isinstance(val, str) and val in NAMES_ELSEWHERE:
            raise ValueError(f"There is no loss {val!r}: {NAMES_ELSEWHERE[val]}.")
        return bool(super().is_satisfied_by(val))


@with_parameters
class LossParameters(Parameters):
    """Those of estimators with a choice of losses."""

    loss: str = parameter(_LossName(set(LOSSES)), default="crammer_singer")
    top_k: int | None = parameter(COUNT, None, default=None)
    smoothing: float = parameter(NOT_NEGATIVE, default=0.0)
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=1000)
    class_weight: ClassWeight = parameter(dict, StrOptions({"balanced"}), None, default=None)
    cost_matrix: CostMatrix = parameter("array-like", dict, None, default=None)
    probability: bool = parameter("boolean", default=False)
    solver: Any = parameter(HasMethods("solve"), None, default=None)

    @property
    def _needs_temperature(self) -> bool:
        """Whether probabilities are wanted that the loss does not give by itself."""
        return self.probability and not self._loss().gives_probabilities

    def _loss(self, classes: ArrayLike | None = None) -> Loss:
        """The loss, with the costs between these classes."""
        loss = get_loss(self.loss, self.top_k, self.smoothing)
        if self.cost_matrix is None:
            return loss
        check_takes_costs(self.loss)
        if classes is None:
            return loss
        return get_loss(
            self.loss, self.top_k, self.smoothing, margins_of(self.cost_matrix, classes)
        )


@with_parameters
class LinearParameters(LossParameters):
    """Those of linear machines."""

    fit_intercept: bool = parameter("boolean", default=True)
    intercept_scaling: float = parameter(POSITIVE, default=1.0)
    store_dual: bool = parameter("boolean", default=False)


@with_parameters
class KernelParameters(Parameters):
    """Those of kernel machines."""

    kernel: Kernel = parameter(StrOptions(set(KERNELS)), callable, default="rbf")
    gamma: str | float = parameter(StrOptions({"scale", "auto"}), NOT_NEGATIVE, default="scale")
    degree: float = parameter(NOT_NEGATIVE, default=3)
    coef0: float = parameter(Interval(Real, None, None, closed="neither"), default=0.0)
    cache_size: float = parameter(POSITIVE, default=200)


@with_parameters
class SearchParameters(Parameters):
    """Those of a search for C."""

    Cs: int | ArrayLike = parameter(COUNT, "array-like", default=10)
    cv: object = parameter("cv_object", default=None)
    scoring: str | Callable[..., float] | None = parameter(str, callable, None, default=None)
    refit: bool = parameter("boolean", default=True)
    early_stopping: bool = parameter("boolean", default=True)
