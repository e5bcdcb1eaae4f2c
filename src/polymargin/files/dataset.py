"""What every reader of data files returns, and what it raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pyarrow

Matrix = Any  # a dense or a CSR array; SciPy has no types


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples of one file.

    Attributes
    ----------
    X : csr_array, ndarray or None
        Features, a row per example; None for text and for tables.
    y : ndarray or None
        Labels: integers, floats or strings; None where the file has none.
    text : sequence of str or None
        The texts, where the file holds text.
    feature_names : list of str or None
        Names of the columns of X, where the file has them.
    source : str
        The path it was read from.
    label_name : str or None
        The column that the labels came from.
    weight : ndarray or None
        Weights of the examples, where the file has some.
    table : pyarrow.Table or None
        Columns of all kinds, where they were asked for.
    place_of : callable or None
        Gives the file and the line of an example, as ``train.csv:7``, by its number from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from polymargin.io import Dataset
    >>> data = Dataset(X=np.eye(3), y=np.array(["a", "b", "a"]))
    >>> data.n_examples, data.take([0, 2]).y.tolist()
    (3, ['a', 'a'])
    """

    X: Matrix = None
    y: NDArray | None = None
    text: Sequence[str] | None = field(default=None, repr=False)
    feature_names: list[str] | None = field(default=None, repr=False)
    source: str = ""
    label_name: str | None = None
    weight: NDArray | None = field(default=None, repr=False)
    table: pyarrow.Table = field(default=None, repr=False)
    place_of: Callable[[int], str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        lengths = {len(part) for part in (self.y, self.text, self.weight) if part is not None}
        if self.X is not None:
            lengths.add(self.X.shape[0])
        if self.table is not None:
            lengths.add(self.table.num_rows)
        if self.X is None and self.text is None and self.table is None:
            raise ValueError("A Dataset needs X, text or a table.")
        if len(lengths) > 1:
            raise ValueError(f"X, y and text differ in length: {sorted(lengths)}.")
        names = self.feature_names
        if self.X is not None and names is not None and len(names) != self.X.shape[1]:
            raise ValueError("There must be one name for each column of X.")

    @property
    def n_examples(self) -> int:
        """The number of examples."""
        if self.X is not None:
            return int(self.X.shape[0])
        return len(self.text or ()) if self.table is None else int(self.table.num_rows)

    def take(self, rows: ArrayLike) -> Dataset:
        """Give the examples with these numbers, or where this mask is True.

        Parameters
        ----------
        rows : array-like of int or bool
            Numbers of examples, or one truth value per example.

        Returns
        -------
        Dataset
            Copies of these examples.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        place_of = self.place_of
        return replace(
            self,
            X=None if self.X is None else self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            text=None if self.text is None else [self.text[int(i)] for i in chosen],
            weight=None if self.weight is None else self.weight[chosen],
            table=None if self.table is None else self.table.take(chosen),
            place_of=None if place_of is None else lambda i: place_of(int(chosen[i])),
        )


class DataFileError(ValueError):
    r"""A data file that cannot be read, with the place of the fault.

    Parameters
    ----------
    reason : str
        What was wrong, what was expected and what to do.
    path : str, default=""
        The file.
    line, column : int, default=None
        Where, counted from 1. `column` counts bytes in svmlight files and fields in tables.

    Examples
    --------
    >>> import os, tempfile
    >>> from polymargin.io import DataFileError, read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bad.svm")
    ...     _ = open(path, "w").write("1 1:0.5\n2 1:x\n")
    ...     try:
    ...         read_data(path)
    ...     except DataFileError as error:
    ...         print(error.line, error.column)
    2 3
    """

    def __init__(
        self, reason: str, *, path: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = [str(part) for part in (self.path, self.line, self.column) if part]
        return ": ".join([":".join(place), self.reason]) if place else self.reason
