"""
Checkpoints: a fit that goes on
===============================

A long fit is stopped in the middle, as by a crash, and begun again: it goes on from its
checkpoint and ends with the same coefficients, to the last bit, as one that was left alone.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from polymargin import Checkpoint, LinearMulticlassSVC
from polymargin.solvers import watching

X, y = load_digits(return_X_y=True)
X = X / 16
settings = {"C": 10.0, "tol": 1e-5, "random_state": 0}
whole = LinearMulticlassSVC(**settings).fit(X, y)


class CrashError(Exception):
    """Stands for a power cut."""


def cut_the_power(record):
    if record["pass"] >= whole.n_iter_ // 2:
        raise CrashError


with tempfile.TemporaryDirectory() as folder:
    checkpoint = Checkpoint(Path(folder) / "digits.checkpoint", every=None, passes=5)
    clf = LinearMulticlassSVC(**settings, checkpoint=checkpoint)
    try:
        with watching(cut_the_power):
            clf.fit(X, y)
    except CrashError:
        print("crashed in the middle")
    clf.fit(X, y)  # the same line again

print("the same coefficients:", np.array_equal(clf.coef_, whole.coef_))

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for fit, style, name in ((whole, "-", "left alone"), (clf, "--", "crashed, and begun again")):
    axes.plot(fit.history_["pass"], fit.history_["estimated_gap"], style, label=name)
axes.axvline(whole.n_iter_ // 2, color="grey", linestyle=":", label="the crash")
axes.set(xlabel="passes", ylabel="relative duality gap, estimated", yscale="log")
axes.legend()
plt.show()
