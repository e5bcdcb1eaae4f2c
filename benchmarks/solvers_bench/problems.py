"""Which problems are run: a default set for a quarter of an hour, and the full grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.datasets import Layout

# Mostly zeros: everybody gets them as CSR.
SPARSE_DENSE = ("mnist", "quickdraw345")
# In the order of their cost.
FULL_DATA = (
    "satimage",
    "letter",
    "banking77",
    "clinc150",
    "news20",
    "rcv1_multiclass_sub",
    "usps",
    "mnist",
    "quickdraw345",
    "aloi",
)
FULL_C = (0.01, 0.1, 1.0, 10.0)  # from easy to hard, see Runner.hopeless
COMPARED = ("crammer_singer", "one_vs_rest")
ACCURACY_ONLY = ("squared_hinge", "logistic")
OTHER_LOSSES = ("weston_watkins", "top_k_alpha", "top_k_beta")  # the one peer is written by hand
KERNEL_DATA = ("digits", "satimage", "usps", "letter")


@dataclass(frozen=True)
class Problem:
    """A data set, a C and an objective."""

    data: str
    C: float
    objective: str

    @property
    def layout(self) -> Layout:
        """The layout every solver gets the features in."""
        return "csr" if self.data in SPARSE_DENSE else "native"

    def __str__(self) -> str:
        return f"{self.data} C={self.C:g} {self.objective}"


def default_problems() -> Iterator[Problem]:
    """Nearly every objective on the bundled digits, the compared ones on more data; C = 1."""
    for objective in (*COMPARED, "weston_watkins", "top_k_alpha", *ACCURACY_ONLY, "rbf_kernel"):
        yield Problem("digits", 1.0, objective)
    yield Problem("letter", 1.0, "crammer_singer")
    yield Problem("letter", 1.0, "one_vs_rest")
    yield Problem("clinc150", 1.0, "crammer_singer")


def full_problems() -> Iterator[Problem]:
    """The grid of ten data sets and four C: first what is compared by its primal."""
    for objectives in (COMPARED, OTHER_LOSSES, ACCURACY_ONLY):
        for data in FULL_DATA:
            for C in FULL_C:
                for objective in objectives:
                    yield Problem(data, C, objective)
    for data in KERNEL_DATA:
        yield Problem(data, 10.0, "rbf_kernel")


def select(
    problems: Iterator[Problem],
    data: Sequence[str] | None,
    C: Sequence[float] | None,
    objectives: Sequence[str] | None,
) -> list[Problem]:
    """Keep the problems asked for; None keeps all."""
    return [
        problem
        for problem in problems
        if (data is None or problem.data in data)
        and (C is None or problem.C in C)
        and (objectives is None or problem.objective in objectives)
    ]
