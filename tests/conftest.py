"""What all tests share: prepared data sets and the switch for slow tests."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks import datasets

pytest.register_assert_rewrite("tests.reference")  # for what its assertions say

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run the tests marked slow as well")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes long; runs only with --run-slow")
    # jobs in the background of a shell ignore Ctrl-C, which some tests send to themselves
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --run-slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@functools.lru_cache(maxsize=4)
def _load(name: str, dtype: np.dtype) -> datasets.Dataset:
    """Load a data set once per process; few are kept, since some are large."""
    return datasets.load(name, dtype=dtype, download=False)


@pytest.fixture(scope="session")
def load_data() -> Callable[..., Split]:
    """A function ``load_data(name, dtype=np.float64)`` that gives a prepared data set.

    It returns ``X_train, y_train, X_test, y_test`` and skips the test where the data are absent.
    The arrays are shared by all tests of the process: do not modify them.
    """

    def load(name: str, dtype: Any = np.float64) -> Split:
        try:
            data = _load(name, np.dtype(dtype))
        except FileNotFoundError as error:
            pytest.skip(f"data set {name} is absent: {error}")
        return data.X_train, data.y_train, data.X_test, data.y_test

    return load
