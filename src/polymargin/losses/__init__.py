"""The losses: one module each, named as the compiled table names it.

================== ============================================ ================================
loss               value                                        block set of the dual
================== ============================================ ================================
``crammer_singer`` ``max(0, max_j h_j)``                        ``sum p <= c``
``weston_watkins`` ``sum_j max(0, h_j)``                        ``p_j <= c``
``top_k_beta``     ``(1/k) sum of the k largest max(0, h_j)``   ``p_j <= c/k``, ``sum p <= c``
``top_k_alpha``    ``max(0, (1/k) sum of the k largest h_j)``   ``p_j <= sum(p)/k``, ``sum p <= c``
``one_vs_rest``    ``sum_m max(0, 1 - y_m s_m)``, all classes   ``p_m <= c``
================== ============================================ ================================

with margins ``h_j = 1 + s_j - s_y`` over the wrong classes (or ``Delta(y, j) + s_j - s_y``); each
is ``max p.h`` over its block set, or, with a smoothing ``g``, ``max p.h - g/(2 c) ||p||^2``. Smooth
by themselves are ``one_vs_rest_squared``, ``sum_m max(0, 1 - y_m s_m)^2`` (any ``p_m >= 0``), and
``softmax``, ``log(1 + sum_j exp(s_j - s_y))`` (``sum p <= c``), and ``top_k_entropy``, which has
softmax's conjugate on the block set of ``top_k_alpha``. See docs/adding_a_loss.md.
"""

from __future__ import annotations

import importlib
from functools import cache

from polymargin.core import core
from polymargin.losses.base import Loss
from polymargin.losses.margins import Margins

__all__ = [
    "LOSSES",
    "NAMES_ELSEWHERE",
    "Loss",
    "Margins",
    "check_takes_costs",
    "get_loss",
    "loss_class",
]

LOSSES: tuple[str, ...] = tuple(core.loss_names())

_OURS = '"crammer_singer", the default, compares the classes'
# what losses are called in scikit-learn, and what that is here
NAMES_ELSEWHERE = {
    "hinge": f'LinearSVC\'s "hinge" is "one_vs_rest" here; {_OURS}',
    "squared_hinge": f'LinearSVC\'s "squared_hinge" is "one_vs_rest_squared" here; {_OURS}',
    "log_loss": 'multinomial logistic regression is "softmax" here',
    "multinomial": 'multinomial logistic regression is "softmax" here',
    "ovr": f'it is "one_vs_rest" here; {_OURS}',
}


@cache
def loss_class(name: str) -> type[Loss]:
    """The class of the loss called ``name``.

    Examples
    --------
    >>> from polymargin.losses import loss_class
    >>> loss_class("softmax").gives_probabilities
    True
    """
    if name not in LOSSES:
        hint = f": {NAMES_ELSEWHERE[name]}" if name in NAMES_ELSEWHERE else ""
        raise ValueError(f"Unknown loss {name!r}{hint}; expected one of {', '.join(LOSSES)}.")
    module = importlib.import_module(f"{__name__}.{name}")
    found = [c for c in vars(module).values() if getattr(c, "name", None) == name]
    assert len(found) == 1, f"{module.__name__} must have one class whose name is {name!r}"
    cls: type[Loss] = found[0]
    return cls


def losses_with(parameter: str) -> list[str]:
    """The names of the losses that have a parameter."""
    return [name for name in LOSSES if parameter in loss_class(name).parameters]


def check_takes_costs(name: str) -> None:
    """Raise ``ValueError`` for a loss that has no margins between classes.

    Examples
    --------
    >>> from polymargin.losses import check_takes_costs
    >>> check_takes_costs("crammer_singer")  # nothing is raised
    """
    cls = loss_class(name)
    if "margins" not in cls.parameters:
        raise ValueError(
            f"loss={name!r} cannot take costs between classes: {cls.no_costs}. Leave cost_matrix "
            f"out, or use {', '.join(repr(one) for one in losses_with('margins'))}."
        )


def get_loss(
    name: str,
    top_k: int | None = None,
    smoothing: float = 0.0,
    margins: Margins | None = None,
) -> Loss:
    """The loss called ``name``.

    ``top_k`` is required by the top-k losses and ignored by others; ``smoothing`` is for the hinge
    losses, ``margins`` (between classes; None: all are 1) for those of them that compare classes.

    Examples
    --------
    >>> from polymargin import get_loss
    >>> get_loss("top_k_beta", top_k=3).name
    'top_k_beta'
    """
    cls, given = loss_class(name), {"top_k": top_k, "smoothing": smoothing, "margins": margins}
    if smoothing != 0 and "smoothing" not in cls.parameters:
        raise ValueError(f"loss={name!r} is smooth by itself: leave smoothing at 0.")
    if margins is not None:
        check_takes_costs(name)
    return cls(**{parameter: given[parameter] for parameter in cls.parameters})
