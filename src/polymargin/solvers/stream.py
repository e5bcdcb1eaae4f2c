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

from polymargin.arrays import Attributes, Codes, Doubles, Floats
from polymargin.core import core
from polymargin.data import Rows
from polymargin.losses import Loss
from polymargin.solvers.settings import Settings
from polymargin.solvers.state import aligned_zeros

CHUNK = 2e8  # multiplications between looks at Ctrl-C


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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC, StreamSolver
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(stream=StreamSolver(reservoir=50, revisits=1))
    >>> clf.partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2]).n_samples_seen_
    150
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

    Everything that changes belongs to the compiled engine, whose methods are one step each: threads
    that look see it before or after a chunk of examples, and so does who stops it with Ctrl-C. Only
    one thread at a time may make it learn.

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
        self.averages = bool(settings.average)  # whether the model is the average of the iterates
        self._engine = self._new_engine(*self._room(self._lanes))

    def _new_engine(self, W: Floats, U: Floats) -> Any:
        kind: type[Any] = core.StreamF32 if self.dtype == np.float32 else core.StreamF64
        capacity, revisits, seed = self._made_with
        return kind(
            self.loss.compiled,
            n_features=self.n_features,
            intercept_scaling=self.intercept_scaling,
            capacity=capacity,
            revisits=revisits,
            seed=seed,
            W=W,
            U=U,
        )

    def set_loss(self, loss: Loss) -> None:
        """The same loss with other margins, for the examples to come."""
        self._engine.set_loss(loss.compiled)
        self.loss = loss

    @property
    def _lanes(self) -> int:
        return int(core.vector_bytes // self.dtype.itemsize)

    def _room(self, columns: int) -> tuple[Floats, Floats]:
        """Zeros for the weights, and for what their averages need."""
        shape = (self.n_features + (self.intercept_scaling != 0), columns)
        W = aligned_zeros(shape, self.dtype)
        return W, aligned_zeros(shape, self.dtype) if self.averages else W[:0]

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
        if column == self._engine.W.shape[1]:
            self._widen()
        self._engine.add_class(-1 if like is None else like)
        return column

    def _widen(self) -> None:
        """Room for more classes; in steps of an eighth, so that many late classes stay cheap."""
        old_W, old_U = self._engine.W, self._engine.U
        old = old_W.shape[1]
        W, U = self._room(old + self._lanes * max(1, old // (8 * self._lanes)))
        W[:, :old], U[:, :old] = old_W, old_U
        self._engine.set_weights(W, U)

    def set_weights(self, coef: Floats, intercept: Floats) -> None:
        """Start from a model, (classes x features) and (classes,); nobody else has this yet."""
        new = slice(self.n_columns, self.n_columns + len(coef))
        for _ in range(len(coef)):
            self.add_class()
        W = self._engine.W
        W[: self.n_features, new] = coef.T
        if self.intercept_scaling:
            W[self.n_features, new] = intercept / self.intercept_scaling

    def learn(self, rows: Rows, columns: Codes, c: Doubles, first: int, last: int) -> None:
        """One step for each of the rows ``first`` to ``last``; those of weight zero are absent."""
        norms = rows.squared_norms + self.intercept_scaling**2
        chunk = max(64, int(CHUNK / ((rows.per_row + 1) * self._engine.W.shape[1])))
        for start in range(first, last, chunk):
            end = min(start + chunk, last)
            part = slice(start, end)
            self._engine.learn(rows.compiled, start, columns[part], c[part], norms[part])

    def scores(self, rows: Rows) -> Floats:
        """Scores of the rows, a column per class."""
        scores: Floats = self._engine.scores(rows.compiled)
        return scores

    def weights(self) -> Floats:
        """The model, (features and constant feature, classes), as a new array."""
        weights: Floats = self._engine.model()
        return weights

    def __getstate__(self) -> Attributes:
        state = {name: value for name, value in dict(self.__dict__).items() if name != "_engine"}
        columns = self._engine.W.shape[1]
        return state | {"_columns": columns, "_state": self._engine.export_state()}

    def __setstate__(self, state: Attributes) -> None:
        state = dict(state)
        columns, (*rest, W, U) = state.pop("_columns"), state.pop("_state")
        self.__dict__.update(state)
        columns = max(columns, W.shape[1])
        columns = -(-columns // self._lanes) * self._lanes  # another machine may pad otherwise
        wide_W, wide_U = self._room(columns)
        wide_W[:, : W.shape[1]], wide_U[:, : W.shape[1]] = W, U
        self._engine = self._new_engine(wide_W, wide_U)
        self._engine.import_state(*rest)
