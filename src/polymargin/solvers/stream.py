"""Learning from a stream: one exact restricted step per example, which is then forgotten.

A new example enters with a zero block, and its block is set to the optimum for the weights as they
are (one visit of :class:`~polymargin.solvers.dual.DualSolver`). It is never changed afterwards, so
nothing of the example is kept: the memory is that of the weights. A reservoir of bounded size, if
wanted, keeps some examples with their blocks and goes on improving them.

Everything is a function of the sequence of examples, not of the batches it comes in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin.arrays import Codes, Doubles, Floats
from polymargin.core import core
from polymargin.data import Rows
from polymargin.losses import Loss
from polymargin.solvers.settings import Settings
from polymargin.solvers.state import aligned_zeros

CHUNK = 2e8  # multiplications between looks at Ctrl-C
ARRAYS = ("born", "lengths", "values", "indices", "y", "c", "threshold", "classes", "p")


@dataclass(kw_only=True, eq=False, repr=False)
class StreamSolver(Settings):
    """Expert settings of ``LinearMulticlassSVC.partial_fit``.

    Parameters
    ----------
    average : bool, default=False
        Predict with the average of the weights after every example, instead of the last ones.
        The weights of a class are averaged from its first appearance on. Doubles the memory.
    reservoir : int, default=0
        Keep up to this many past examples with a nonzero block, the latest ones, and visit some of
        them again after every new example. They are copied: with ``m`` nonzeros a row each takes
        about ``8 m`` to ``12 m`` bytes.
    revisits : int, default=1
        How many examples of the reservoir are visited again after every new one.
    """

    average: bool = False
    reservoir: int = 0
    revisits: int = 1

    def check(self) -> None:
        """Raise a ValueError for a setting that means nothing."""
        if not isinstance(self.average, bool | np.bool_):
            raise ValueError(f"average must be True or False, got {self.average!r}.")
        for name, least in (("reservoir", 0), ("revisits", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")


class StreamModel:
    """The weights of a stream and what goes on improving them.

    While there are no more classes than ``top_k``, the k of the loss is the number of wrong
    classes. `seed` is that of the choice of the examples that are visited again.
    """

    def __init__(
        self,
        settings: StreamSolver,
        loss: Loss,
        n_features: int,
        dtype: Any,
        intercept_scaling: float,
        seed: int,
    ) -> None:
        self.loss = loss
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.intercept_scaling = intercept_scaling
        capacity, revisits = int(settings.reservoir), int(settings.revisits)
        self._made_with = (capacity, revisits if capacity else 0, seed)
        self._engine = self._new_engine()
        self.W = self._zeros(self._lanes)
        self.U = self._zeros(self._lanes) if settings.average else self.W[:0]

    def _new_engine(self) -> Any:
        kind = core.StreamF32 if self.dtype == np.float32 else core.StreamF64
        capacity, revisits, seed = self._made_with
        return kind(
            self.loss.compiled,
            n_features=self.n_features,
            intercept_scaling=self.intercept_scaling,
            capacity=capacity,
            revisits=revisits,
            seed=seed,
        )

    def set_loss(self, loss: Loss) -> None:
        """The same loss with other margins, for the examples to come."""
        if loss != self.loss:
            self.loss = loss
            self._engine.set_loss(loss.compiled)

    @property
    def _lanes(self) -> int:
        return int(core.vector_bytes // self.dtype.itemsize)

    def _zeros(self, columns: int) -> Floats:
        return aligned_zeros((self.n_features + (self.intercept_scaling != 0), columns), self.dtype)

    @property
    def averages(self) -> bool:
        """Whether the model is the average of the iterates."""
        return len(self.U) > 0

    @property
    def n_columns(self) -> int:
        """Classes that have weights."""
        return int(self._engine.n_classes)

    @property
    def n_seen(self) -> int:
        """Examples of positive weight so far."""
        return int(self._engine.seen)

    @property
    def n_kept(self) -> int:
        """Examples in the reservoir."""
        return int(self._engine.kept)

    def add_class(self, like: int | None = None) -> int:
        """A further class, with zero weights or those of column ``like``; returns its column."""
        column = self.n_columns
        if column == self.W.shape[1]:
            self._widen()
        self._engine.add_class(-1 if like is None else like)
        if like is not None:
            self.W[:, column] = self.W[:, like]
            self.U[:, column] = self.U[:, like]
        return column

    def _widen(self) -> None:
        """Room for more classes; in steps of an eighth, so that many late classes stay cheap."""
        old = self.W.shape[1]
        columns = old + self._lanes * max(1, old // (8 * self._lanes))
        for name in ("W", "U") if self.averages else ("W",):
            wider = self._zeros(columns)
            wider[:, :old] = getattr(self, name)
            setattr(self, name, wider)
        if not self.averages:
            self.U = self.W[:0]

    def set_weights(self, coef: Floats, intercept: Floats) -> None:
        """Start from a model, (classes x features) and (classes,)."""
        new = slice(self.n_columns, self.n_columns + len(coef))
        for _ in range(len(coef)):
            self.add_class()
        self.W[: self.n_features, new] = coef.T
        if self.intercept_scaling:
            self.W[self.n_features, new] = intercept / self.intercept_scaling

    def learn(self, rows: Rows, columns: Codes, c: Doubles, first: int, last: int) -> None:
        """One step for each of the rows ``first`` to ``last``; those of weight zero are absent."""
        norms = rows.squared_norms + self.intercept_scaling**2
        chunk = max(64, int(CHUNK / ((rows.per_row + 1) * self.W.shape[1])))
        for start in range(first, last, chunk):
            end = min(start + chunk, last)
            part = slice(start, end)
            self._engine.learn(
                rows.compiled, start, columns[part], c[part], norms[part], self.W, self.U
            )

    def scores(self, rows: Rows) -> Floats:
        """Scores of the rows, a column per class."""
        out = np.empty((rows.n, self.n_columns), self.dtype)
        self._engine.scores(rows.compiled, self.W, self.U, out)
        return out

    def weights(self) -> Floats:
        """The model, (features and constant feature, classes), as a new array."""
        W = self.W[:, : self.n_columns].copy()
        if self.averages:
            shares = np.empty(self.n_columns, self.dtype)
            self._engine.shares(shares)
            W -= self.U[:, : self.n_columns] * shares
        return W

    def __getstate__(self) -> dict[str, Any]:
        seen, filled, oldest, drawn, n_values, n_indices, n_entries = self._engine.counters()
        lengths = {"born": self.n_columns, "lengths": 3 * filled, "values": n_values}
        lengths |= {"indices": n_indices, "classes": n_entries, "p": n_entries}
        types: dict[str, Any] = dict.fromkeys(("values", "threshold", "p"), self.dtype)
        types |= {"born": np.int64, "lengths": np.int64, "c": np.float64}
        arrays = {
            name: np.empty(lengths.get(name, filled), types.get(name, np.int32)) for name in ARRAYS
        }
        self._engine.export_state(*arrays.values())
        state = {name: value for name, value in self.__dict__.items() if name != "_engine"}
        used = slice(self.n_columns)
        state["W"], state["U"] = self.W[:, used].copy(), self.U[:, used].copy()
        counters = (seen, filled, oldest, drawn)
        return state | {"_columns": self.W.shape[1], "_counters": counters, "_arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        counters, arrays, columns = (state.pop(f"_{s}") for s in ("counters", "arrays", "columns"))
        W, U = state.pop("W"), state.pop("U")
        self.__dict__.update(state)
        self._engine = self._new_engine()
        self._engine.import_state(*counters, *(arrays[name] for name in ARRAYS))
        columns = -(-columns // self._lanes) * self._lanes  # another machine may pad otherwise
        self.W = self._zeros(columns)
        self.W[:, : W.shape[1]] = W
        self.U = self.W[:0]
        if len(U):
            self.U = self._zeros(columns)
            self.U[:, : W.shape[1]] = U
