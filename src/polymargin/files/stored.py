"""The features of a data directory, mapped into memory: only what is in use is there."""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from polymargin.files.dataset import DataFileError, Matrix
from polymargin.files.npz import UNSOUND

_PAGE = mmap.PAGESIZE
_CAN_ADVISE = hasattr(mmap.mmap, "madvise")  # not on Windows, where the system alone decides
if _CAN_ADVISE:
    import resource


class StoredArray:
    """The array of a .npy file; `values` are read when they are used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "rb")  # noqa: SIM115 (for as long as this lives)
        try:
            version = npy.read_magic(self._file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, by_columns, dtype = read(self._file)
        except UNSOUND as error:
            raise DataFileError(f"{path.name} is damaged: {error}") from error
        self._start = self._file.tell()
        self._entry = dtype.itemsize * math.prod(self.shape[1:])  # bytes, along the first axis
        self._then = self._now()
        size = self._start + self._entry * self.shape[0]
        if by_columns or self._then[0] != size:
            raise DataFileError(f"{path.name} is damaged: it should have {size:,} bytes, by rows")
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self.values: NDArray = np.frombuffer(self._map, dtype, offset=self._start)
        self.values = self.values.reshape(self.shape)

    def _now(self) -> tuple[int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns

    def check(self) -> None:
        """Raise a `DataFileError` where the file was written to meanwhile."""
        if self._now() != self._then:
            raise DataFileError(f"{self.path.name} has changed since it was opened")

    def release(self) -> None:
        """What was read of it need not stay in memory."""
        if _CAN_ADVISE:
            self._map.madvise(mmap.MADV_DONTNEED)

    def fetch(self, firsts: NDArray, lasts: NDArray) -> None:
        """Have the system read entries that will soon be used: from `firsts` to before `lasts`."""
        if not _CAN_ADVISE:
            return
        starts = (self._start + firsts * self._entry) // _PAGE * _PAGE
        sizes = self._start + lasts * self._entry - starts
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            if size:
                self._map.madvise(mmap.MADV_WILLNEED, start, size)


class StoredMatrix:
    """The features of a data directory."""

    def __init__(self, folder: Path, shape: tuple[int, int], *, dense: bool) -> None:
        self.folder, self.shape, self.dense = folder, shape, dense
        names = ("X",) if dense else ("data", "indices", "indptr")
        self._arrays = [StoredArray(folder / f"{name}.npy") for name in names]
        values = self.values = [array.values for array in self._arrays]
        self.dtype = values[0].dtype
        self.entry_bytes = sum(one.itemsize for one in values[:2])  # a value, with its column
        self.row_bytes = 0 if dense else values[2].itemsize  # of a row, besides: where it begins
        good = self.dtype in (np.float32, np.float64)
        if dense:
            self.n_stored, good = math.prod(shape), good and values[0].shape == shape
        else:
            data, indices, indptr = values
            self.n_stored = len(data)
            good = good and indptr.shape == (shape[0] + 1,) and data.shape == indices.shape
            good = good and indices.dtype == indptr.dtype and indices.dtype.kind == "i"
        if not good:
            raise DataFileError("the features are not the matrix that they should be")

    def bounds(self, rows: NDArray) -> NDArray:
        """Where the values of some rows begin; the row after the last one counts as such."""
        if self.dense:
            return rows * self.shape[1]
        found: NDArray = self._arrays[2].values[rows].astype(np.int64)
        if (found < 0).any() or (found > self.n_stored).any():
            raise DataFileError("indptr.npy is damaged")
        return found

    def matrix(self, first: int, last: int) -> Matrix:
        """The rows from `first` to before `last`; nothing is copied but where they begin."""
        if self.dense:
            return self._arrays[0].values[first:last]
        data, indices, indptr = (array.values for array in self._arrays)
        begin, end = self.bounds(np.array([first, last])).tolist()
        where = indptr[first : last + 1] - indptr.dtype.type(begin)
        shape = (last - first, self.shape[1])
        return sparse.csr_array((data[begin:end], indices[begin:end], where), shape=shape)

    def take(self, rows: NDArray) -> Matrix:
        """A copy of some rows."""
        if self.dense:
            return self._arrays[0].values[rows]
        begin = self.bounds(rows)
        counts = self.bounds(rows + 1) - begin
        ends = np.cumsum(counts)
        chosen = np.repeat(begin - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
        data, indices = (array.values[chosen] for array in self._arrays[:2])
        where = np.concatenate([[0], ends]).astype(indices.dtype)
        return sparse.csr_array((data, indices, where), shape=(len(rows), self.shape[1]))

    def check(self) -> None:
        """Raise a `DataFileError` where the files were written to meanwhile."""
        for array in self._arrays:
            array.check()

    def release(self) -> None:
        """What was read need not stay in memory."""
        for array in self._arrays:
            array.release()

    @staticmethod
    def waits() -> int:
        """How often this process had to wait for something to be read, so far."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt if _CAN_ADVISE else 0

    def fetch(self, firsts: NDArray, lasts: NDArray) -> None:
        """Have the system read rows that will soon be used: from `firsts` to before `lasts`."""
        if not self.dense:
            firsts, lasts = self.bounds(firsts), self.bounds(lasts)
        for array in self._arrays[:2]:
            array.fetch(firsts, lasts)
