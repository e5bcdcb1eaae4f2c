"""How large things are, for Dask: it takes what it does not know for a few bytes.

Then it would neither write them to disk where memory is short, nor count what it costs to send
them. (Sparse arrays are not known to it; sparse matrices are.)
"""

from __future__ import annotations

from functools import cache

from dask.sizeof import sizeof
from scipy import sparse

from polymargin.solvers.engines.part import Share


@cache
def register() -> None:
    """Let Dask know."""
    sizeof.register(sparse.sparray, _of_attributes)
    sizeof.register(Share, _of_attributes)


def _of_attributes(value: object) -> int:
    return sum(sizeof(one) for one in list(vars(value).values()))
