"""Values come back from JSON and arrays as they were, with their types."""

from __future__ import annotations

import enum
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polymargin.storage import Decoder, Encoder, StorageError, checked_sparse

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=20,
)


def there_and_back(value):
    encoder = Encoder()
    text = json.dumps(encoder.encode(value, "it"), allow_nan=False)
    arrays = {f"arrays/{i}.npy": array for i, array in enumerate(encoder.arrays)}
    return Decoder(arrays.__getitem__).decode(json.loads(text))


@given(value=plain)
def test_plain_values(value):
    back = there_and_back(value)
    assert back == value and repr(back) == repr(value)  # the types too


def test_arrays_and_what_numpy_has():
    value = {
        "array": np.arange(3, dtype=np.int16),
        "nan": float("nan"),
        "words": np.array([["a", "é"]]),
        "objects": np.array(["a", "bcd"], dtype=object),
        "type": np.float32,
        "number": np.float32(0.5),
        "list": [np.zeros((2, 0)), {"deep": np.ones(1)}],
    }
    back = there_and_back(value)
    assert np.isnan(back["nan"]) and back["type"] is np.float32 and back["number"] == 0.5
    for name in ("array", "words", "objects"):
        assert back[name].dtype == value[name].dtype and back[name].tolist() == value[name].tolist()
    assert back["list"][0].shape == (2, 0) and back["list"][1]["deep"].tolist() == [1.0]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices(kind):
    X = kind(np.array([[0, 1.5], [0, 0], [2, 0]], dtype=np.float32))
    back = there_and_back(X)
    assert type(back) is type(X) and back.dtype == X.dtype and (back != X).nnz == 0


def test_members_of_an_enumeration_are_their_values():
    class Status(enum.StrEnum):
        DONE = "done"

    assert there_and_back({"status": Status.DONE}) == {"status": "done"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1, {"a": object()}], r"it\[1\]\['a'\] is an object of type object"),
        (print, r"it is a function or class \(print\)"),
        (np.array([1 + 2j]), "it is an array of type complex128"),
        (np.array([1, "a"], dtype=object), "it is an array of type object"),
        (sparse.csc_array(np.eye(2)), "csc_array.* only CSR"),
    ],
)
def test_what_cannot_be_held_is_named(value, reason):
    with pytest.raises(StorageError, match=reason):
        Encoder().encode(value, "it")


@pytest.mark.parametrize(
    "entry", [{}, {"$unknown": 1}, {"$dtype": "object"}, {"$object": "os.system"}]
)
def test_unknown_entries(entry):
    with pytest.raises(ValueError, match="unknown entry"):
        Decoder(dict.__getitem__).decode(entry)


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [
        ([0, 5], [0, 1, 2], (2, 2)),
        ([0, -1], [0, 1, 2], (2, 2)),
        ([0, 1], [0, 2, 1], (2, 2)),
        ([0, 1], [0, 1, 9], (2, 2)),
        ([0, 1], [0, 1, 2], (2,)),
        ([0.0, 1.0], [0, 1, 2], (2, 2)),
    ],
)
def test_indices_of_sparse_matrices_are_inside(indices, indptr, shape):
    with pytest.raises(ValueError, match=r"ind|shape"):
        checked_sparse(sparse.csr_array, np.ones(2), np.array(indices), np.array(indptr), shape)
