"""What parameters of other programs are called here: hints for those who bring them along."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

OF_LINEAR_SVC = {
    "multi_class": 'the problem of all classes at once, "crammer_singer", is the default; '
    'loss="one_vs_rest" is LinearSVC\'s multi_class="ovr"',
    "penalty": "the penalty is the squared L2 norm always",
    "dual": "the dual is solved always, which gives the certificate",
    "decision_function_shape": "decision_function has a column per class always",
    "eps": "the tolerance is tol, a relative duality gap",
    "solver_type": 'use loss=: "crammer_singer" is LIBLINEAR\'s -s 4',
}


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that knows parameters of other programs, and refuses them with a reason."""

    @wraps(init)
    def hinting(self: object, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            said = _hints(kwargs)
            if not said or "unexpected keyword" not in str(error):
                raise
            raise TypeError(f"{type(self).__name__} has no {said}.") from None

    return hinting


def _hints(names: Iterable[str]) -> str:
    return "; and no ".join(
        f"{name}=: {OF_LINEAR_SVC[name]}" for name in names if name in OF_LINEAR_SVC
    )
