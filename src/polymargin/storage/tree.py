"""Values as JSON and arrays, and back: numbers, strings, containers, arrays and known objects.

JSON's own types stand for themselves (a list is a list); anything else is an object with one key:

=============  ===================================================================
``$float``     "nan", "inf" or "-inf"
``$tuple``     the elements
``$dict``      pairs of key and value
``$array``     the name of an array in the archive
``$strings``   "dtype" ("str" or "object"), "shape", "values" of an array of strings
``$sparse``    "class", "shape", "data", "indices" and "indptr" of a CSR matrix
``$dtype``     the name of a NumPy type
``$object``    a known class, with what belongs to it
=============  ===================================================================
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.storage.errors import StorageError
from polymargin.storage.limits import StringRoom

Array = NDArray[Any]
Json = Any  # what the json module takes and gives

_SPARSE = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
_PARTS = ("data", "indices", "indptr")
_DTYPES = ("float16", "float32", "float64", "int32", "int64")
_NUMBERS = "biuf"


class Encoder:
    """Turns values into JSON and collects their arrays.

    ``encode_object(value, where, encoder)`` gives the JSON of a known object, or None.
    """

    def __init__(
        self, encode_object: Callable[[object, str, Encoder], Json] = lambda *what: None
    ) -> None:
        self.arrays: list[Array] = []
        self._strings = StringRoom()
        self._encode_object = encode_object

    def encode(self, value: object, where: str) -> Json:
        """The JSON of a value; `where` names it in errors."""
        if isinstance(value, enum.Enum):
            value = value.value
        if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS + "U":
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            values = [self.encode(part, f"{where}[{i}]") for i, part in enumerate(value)]
            return values if type(value) is list else {"$tuple": values}
        if type(value) is dict:
            return {"$dict": [self._pair(key, value[key], where) for key in value]}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, (type, np.dtype)) and np.dtype(value).name in _DTYPES:
            return {"$dtype": np.dtype(value).name}
        encoded = self._encode_object(value, where, self)
        if encoded is None:
            raise StorageError(f"{where} is {_a(value)}")
        return encoded

    def _pair(self, key: object, value: object, where: str) -> list[Json]:
        return [self.encode(key, f"a key of {where}"), self.encode(value, f"{where}[{key!r}]")]

    def _array(self, value: Array, where: str) -> Json:
        if value.dtype.kind in _NUMBERS and value.dtype.itemsize <= 8:
            self.arrays.append(value)
            return {"$array": f"arrays/{len(self.arrays) - 1}.npy"}
        values = value.ravel().tolist()
        if value.dtype.kind not in "UO" or not all(type(one) is str for one in values):
            raise StorageError(f"{where} is an array of type {value.dtype}")
        kind = "str" if value.dtype.kind == "U" else "object"
        if kind == "str":
            try:
                self._strings.take(values)
            except StorageError as error:
                raise StorageError(f"{where} is {error}") from error
        return {"$strings": {"dtype": kind, "shape": list(value.shape), "values": values}}

    def _sparse(self, value: sparse.csr_array, where: str) -> Json:
        name = type(value).__name__
        if name not in _SPARSE:
            raise StorageError(f"{where} is {_a(value)}; of sparse matrices, only CSR is held")
        encoded = {part: self.encode(getattr(value, part), f"{where}.{part}") for part in _PARTS}
        return {"$sparse": {"class": name, "shape": list(value.shape), **encoded}}


class Decoder:
    """Turns JSON into values.

    ``read_array(name)`` gives an array of the archive, ``decode_object(json, decoder)`` the object
    that JSON with "$object" describes. An encoder names every array once; one that is named twice
    is refused: a file must not ask for more than it holds.
    """

    def __init__(
        self,
        read_array: Callable[[str], Array],
        decode_object: Callable[[dict[str, Json], Decoder], object] | None = None,
    ) -> None:
        self._read_array = read_array
        self._named: set[str] = set()
        self._room = StringRoom()
        self._decode_object = decode_object

    def decode(self, value: Json) -> Any:
        """The value of JSON; `ValueError` and its like where it is not what an encoder writes."""
        if isinstance(value, list):
            return [self.decode(part) for part in value]
        if not isinstance(value, dict):
            return value
        content: Json
        tag, content = next(iter(value.items()), ("", None))
        match tag:
            case "$float":
                return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
            case "$tuple":
                return tuple(self.decode(part) for part in content)
            case "$dict":
                return {self.decode(key): self.decode(one) for key, one in content}
            case "$array":
                return self._array(content)
            case "$strings":
                return self._strings(content)
            case "$sparse":
                data, indices, indptr = (self.decode(content[part]) for part in _PARTS)
                maker = _SPARSE[content["class"]]
                return checked_sparse(maker, data, indices, indptr, content["shape"])
            case "$dtype" if content in _DTYPES:
                return np.dtype(content).type
            case "$object" if self._decode_object is not None:
                return self._decode_object(value, self)
        raise ValueError(f"unknown entry {tag!r}: {content!r:.50}")

    def _array(self, name: str) -> Array:
        if name in self._named:
            raise ValueError(f"the array {name!r} is named twice")
        self._named.add(name)
        return self._read_array(name)

    def _strings(self, content: dict[str, Json]) -> Array:
        values, shape = content["values"], tuple(content["shape"])
        if not all(type(one) is str for one in values):
            raise ValueError("an array of strings holds something else")
        if content["dtype"] == "str":
            self._room.take(values)
            return np.array(values, dtype=np.str_).reshape(shape)
        strings = np.empty(len(values), dtype=object)
        strings[:] = values
        return strings.reshape(shape)


def checked_sparse(
    maker: Callable[..., sparse.csr_array],
    data: Array,
    indices: Array,
    indptr: Array,
    shape: tuple[int, int],
) -> sparse.csr_array:
    """A sparse array whose every index is known to be inside; ``ValueError`` otherwise."""
    for part in (indices, indptr):
        if part.dtype.kind not in "iu":
            raise ValueError(f"indices of type {part.dtype}")
    if len(shape) != 2 or any(part.ndim != 1 for part in (data, indices, indptr)):
        raise ValueError("the parts of a sparse matrix must be vectors, and its shape a pair")
    X = maker((data, indices, indptr), shape=tuple(shape))
    X.check_format(full_check=True)
    return X


def _a(value: object) -> str:
    """What something is, in words: "a function (analyse)", "a RandomState"."""
    if callable(value) and hasattr(value, "__name__"):
        return f"a function or class ({value.__name__})"
    return f"an object of type {type(value).__name__}"
