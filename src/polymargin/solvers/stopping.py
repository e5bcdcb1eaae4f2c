"""When a solver stops, and how it ended: rules that look at a run after every pass.

The certified gap is the default. Keerthi et al. (2008) and Blondel et al. (2014) stop when no block
violates its optimality conditions by more than ``eps`` (their equations 9 and 20; algorithm 1):
that rule is here too, for comparisons; what it says about the objective is not known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from polymargin.solvers.certificate import Certificate


class Status(StrEnum):
    """How a solver ended; the members are strings.

    Examples
    --------
    >>> from polymargin.solvers import Status
    >>> Status.CONVERGED == "converged"
    True
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"  # rounding allows no smaller gap
    INTERRUPTED = "interrupted"
    UNCERTIFIED = "uncertified"  # all passes were made, and nothing is proved

    @property
    def is_early(self) -> bool:
        """Whether the solver gave up before its tolerance."""
        return self in (Status.MAX_ITER, Status.TIME_LIMIT, Status.STALLED)


@dataclass(frozen=True)
class Look:
    """What a rule sees."""

    n_iter: int = 0
    seconds: float = 0.0  # since the solver was called
    certificate: Certificate | None = None  # of the model as it is
    violation: float = math.nan  # the largest one that the last pass saw; NaN where nobody looked
    everyone: bool = False  # whether that pass visited all examples with all classes


class StoppingRule(ABC):
    """Says when to stop, and why.

    Examples
    --------
    >>> from polymargin.solvers import LargestViolation, StoppingRule
    >>> issubclass(LargestViolation, StoppingRule)
    True
    """

    status: Status = Status.CONVERGED
    needs_violation = False

    @abstractmethod
    def met(self, look: Look) -> bool:
        """Whether to stop now."""

    def near(self, gap: float) -> bool:
        """Whether a relative gap that is about this makes a certificate worth its cost."""
        return False

    def goal(self, certificate: Certificate) -> float:
        """The difference ``P - D`` to reach, where that is what the rule asks for."""
        return 0.0

    def must_see_everyone(self, look: Look) -> bool:
        """Whether only a pass over all examples can decide."""
        return False


@dataclass(frozen=True)
class CertifiedGap(StoppingRule):
    """A certified relative duality gap ``(P - D) / P`` of at most `tol`.

    Examples
    --------
    >>> from polymargin import DualSolver
    >>> from polymargin.solvers import CertifiedGap
    >>> solver = DualSolver(stopping=CertifiedGap(1e-3))
    """

    tol: float

    def met(self, look: Look) -> bool:
        """Whether the certificate is good enough."""
        return look.certificate is not None and look.certificate.gap <= self.tol

    def near(self, gap: float) -> bool:
        """Whether the gap may have been reached."""
        return gap <= self.tol

    def goal(self, certificate: Certificate) -> float:
        """The difference ``P - D`` to reach."""
        return self.tol * max(certificate.primal, 0.0)


@dataclass(frozen=True)
class CertifiedDifference(StoppingRule):
    """A certified gap ``P - D`` of at most `value`, as LaRankGap at C (Bordes et al. 2007)."""

    value: float

    def met(self, look: Look) -> bool:
        """Whether the certificate is good enough."""
        return look.certificate is not None and look.certificate.difference <= self.value

    def goal(self, certificate: Certificate) -> float:
        """The difference ``P - D`` to reach."""
        return self.value


@dataclass(frozen=True)
class LargestViolation(StoppingRule):
    """No block violates its optimality conditions by more than `eps`, in units of the margins.

    Keerthi et al. (2008), equations 9 (Crammer-Singer) and 20 (Weston-Watkins); Blondel et al.
    (2014), algorithm 1. Not for the top-k losses, nor with the accelerated outer loop, whose
    weights are not those of the dual.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import DualSolver, LinearMulticlassSVC
    >>> from polymargin.solvers import LargestViolation
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = DualSolver(stopping=LargestViolation(0.1))
    >>> clf = LinearMulticlassSVC(solver=solver, random_state=0).fit(X, y)
    >>> 0 <= clf.dual_gap_ < 1  # certified, whatever stopped it
    True
    """

    eps: float
    needs_violation = True

    def __post_init__(self) -> None:
        if not self.eps > 0:
            raise ValueError(f"eps must be positive, got {self.eps!r}.")

    def met(self, look: Look) -> bool:
        """Whether a pass over all examples found nothing worse."""
        return look.everyone and look.violation <= self.eps

    def must_see_everyone(self, look: Look) -> bool:
        """Whether those visited are all right, and some were not."""
        return look.violation <= self.eps and not look.everyone


@dataclass(frozen=True)
class MostPasses(StoppingRule):
    """So many passes."""

    n: int
    status = Status.MAX_ITER

    def met(self, look: Look) -> bool:
        """Whether all of them are made."""
        return look.n_iter >= self.n


@dataclass(frozen=True)
class MostSeconds(StoppingRule):
    """So much time; None: any."""

    seconds: float | None
    status = Status.TIME_LIMIT

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"time_limit must be positive seconds or None, got {self.seconds}.")

    def met(self, look: Look) -> bool:
        """Whether it is over."""
        return self.seconds is not None and look.seconds >= self.seconds
