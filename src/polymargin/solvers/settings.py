"""Settings of a solver: parameters that scikit-learn can get, set, search and clone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Self

import numpy as np

RandomState = int | np.integer | np.random.RandomState | None


class Settings:
    """Keyword parameters, kept under their names; what scikit-learn asks of a parameter object."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(_names(cls.__init__))

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by name; there is nothing `deep` in them."""
        return {name: getattr(self, name) for name in _names(type(self).__init__)}

    def set_params(self, **params: object) -> Self:
        """Change parameters; an unknown name is an error."""
        known = self._get_param_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for {type(self).__name__}; it has {known!r}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The parameters that are not the default."""
        usual = {n: p.default for n, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if repr(v) != repr(usual[n])]
        return f"{type(self).__name__}({', '.join(changed)})"


@cache
def _names(constructor: Callable[..., None]) -> tuple[str, ...]:
    found = inspect.signature(constructor).parameters
    return tuple(sorted(name for name in found if name != "self"))


def draw_seed(random_state: RandomState) -> int:
    """A seed from what scikit-learn calls a random state."""
    largest = np.iinfo(np.int32).max
    if random_state is None:
        return int(np.random.randint(largest))  # noqa: NPY002
    if isinstance(random_state, int | np.integer):
        random_state = np.random.RandomState(int(random_state))
    return int(random_state.randint(largest))
