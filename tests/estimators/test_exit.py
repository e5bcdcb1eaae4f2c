"""A program that ends with a model still in use ends silently."""

from __future__ import annotations

import subprocess
import sys

import pytest

# a thread that still runs keeps its model: Python does not take it apart at its end
HELD = """
import threading
import numpy as np
from sklearn.datasets import load_iris
from polymargin import {name}
X, y = load_iris(return_X_y=True)
clf = {name}(random_state=0).partial_fit(X, y, classes=np.unique(y))
started = threading.Event()
def keep(model):
    started.set()
    threading.Event().wait()
threading.Thread(target=keep, args=(clf,), daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("name", ["LinearMulticlassSVC", "LaRankClassifier"])
def test_a_live_stream_at_exit_is_no_leak(name):
    done = subprocess.run(
        [sys.executable, "-c", HELD.format(name=name)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
