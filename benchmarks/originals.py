"""Public originals of the data sets, through scikit-learn's fetchers, where there are no files.

Each function returns the four raw arrays (training features and labels, test features and labels)
in the units `datasets.PREPARATIONS` expects, so that the preparation is written once for both ways.
What is downloaded stays in scikit-learn's own folder (``SCIKIT_LEARN_DATA``). Splits are those of
the papers where the original has one (an order or two subsets), otherwise stratified with a fixed
seed. banking77, clinc150 and quickdraw345 have no fetcher: they come from files only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets as fetchers
from sklearn.model_selection import train_test_split

Raw = tuple[Any, Any, Any, Any]  # X_train, y_train, X_test, y_test
RCV1_TEST_ROWS = 20_000
# Second-level topics: C11, E12, M14, G15 and the spelled-out ones under GCAT.
RCV1_TOPIC = re.compile(r"[CEM]\d\d|G15|G(?!CAT)[A-Z]{3,}")


def news20(download: bool = True) -> Raw:
    """20 newsgroups by date, raw counts (130,107 features; LIBSVM's file has fewer)."""
    parts = [
        fetchers.fetch_20newsgroups_vectorized(
            subset=subset, normalize=False, download_if_missing=download
        )
        for subset in _PARTS
    ]
    return parts[0].data, parts[0].target, parts[1].data, parts[1].target


def rcv1_multiclass_sub() -> Raw:
    """RCV1 documents with exactly one second-level topic; the first 20,000 of the test part."""
    arrays: list[Any] = []
    for part, rows in (("train", None), ("test", RCV1_TEST_ROWS)):
        found = fetchers.fetch_rcv1(subset=part)
        topics = [j for j, name in enumerate(found.target_names) if RCV1_TOPIC.fullmatch(name)]
        labels = sparse.csr_array(found.target)[:, topics]
        single = np.flatnonzero(np.diff(labels.indptr) == 1)[:rows]
        arrays += [sparse.csr_array(found.data)[single], labels[single].indices]
    return tuple(arrays)


def covtype(download: bool = True) -> Raw:
    """Forest cover types, a stratified fifth for testing."""
    found = fetchers.fetch_covtype(download_if_missing=download)
    return _stratified(found.data, found.target, 0.2)


def aloi() -> Raw:
    """ALOI from OpenML, 97,200 and 10,800 rows; the largest value becomes 9, that of our files."""
    X, y = _openml("aloi", 1)
    return _stratified(X * (9.0 / np.abs(X).max()), y, 10_800)


def letter() -> Raw:
    """Letter from OpenML, the first 15,000 rows for training."""
    return _first_rows(*_openml("letter", 1), 15_000)


def mnist() -> Raw:
    """MNIST from OpenML, the first 60,000 rows for training."""
    return _first_rows(*_openml("mnist_784", 1), 60_000)


def usps() -> Raw:
    """USPS from OpenML, LIBSVM's order: the first 7,291 rows for training."""
    return _first_rows(*_openml("USPS", 2), 7_291)


def satimage() -> Raw:
    """Satimage from OpenML, the first 4,435 rows for training."""
    return _first_rows(*_openml("satimage", 1), 4_435)


def dna() -> Raw:
    """DNA from OpenML, the first 2,000 rows for training."""
    return _first_rows(*_openml("dna", 1), 2_000)


def digits() -> Raw:
    """scikit-learn's own digits, bundled with it; a stratified quarter for testing."""
    return _stratified(*fetchers.load_digits(return_X_y=True), 0.25)


ORIGINALS: dict[str, Callable[..., Raw]] = {
    function.__name__: function
    for function in (
        aloi,
        covtype,
        digits,
        dna,
        letter,
        mnist,
        news20,
        rcv1_multiclass_sub,
        satimage,
        usps,
    )
}
BUNDLED = ("digits",)  # need no download
KEPT = ("covtype", "news20")  # their fetchers can be told to look on this machine only
_PARTS = ("train", "test")


def fetch(name: str) -> Raw:
    """Fetch the raw arrays of one data set and give the classes codes 0..K-1.

    Parameters
    ----------
    name : str
        A key of `ORIGINALS`.

    Returns
    -------
    X_train, y_train, X_test, y_test
        Features in float64, dense or CSR; labels int32. Test rows of classes without a training
        row are left out.
    """
    return _coded(*ORIGINALS[name]())


def on_this_machine(name: str) -> Raw | None:
    """What `fetch` returns, if an earlier download left it here; None otherwise."""
    if name not in KEPT:
        return None
    try:
        return _coded(*ORIGINALS[name](download=False))
    except OSError:  # what the fetchers raise
        return None


def _coded(X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> Raw:
    classes, codes = np.unique(_sortable(y_train), return_inverse=True)
    y_test = _sortable(y_test)
    known = np.isin(y_test, classes)
    test_codes = np.searchsorted(classes, y_test[known])
    return (
        _features(X_train),
        codes.astype(np.int32),
        _features(X_test)[known],
        test_codes.astype(np.int32),
    )


def _openml(name: str, version: int) -> tuple[np.ndarray, np.ndarray]:
    found = fetchers.fetch_openml(name, version=version, as_frame=False, parser="auto")
    X = found.data.toarray() if sparse.issparse(found.data) else np.asarray(found.data)
    return X.astype(np.float64), np.asarray(found.target)


def _first_rows(X: Any, y: Any, n_train: int) -> Raw:
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def _stratified(X: Any, y: Any, test_size: float) -> Raw:
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=test_size, stratify=y, random_state=0
    )
    return X_train, y_train, X_test, y_test


def _sortable(y: Any) -> np.ndarray:
    """Labels as numbers where they are numbers, so that "10" comes after "9"."""
    y = np.asarray(y)
    try:
        return y.astype(np.float64)
    except ValueError:
        return y.astype(str)


def _features(X: Any) -> Any:
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)
