"""An installed polymargin does what it is for; needs nothing of the checkout.

    python tools/smoke.py [version]

Every loss is trained to its certificate, in both precisions, dense and sparse, by one thread and by
several at once; a model goes to a file and back; the command line answers.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

import polymargin
from polymargin import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.core import core

X, y = load_digits(return_X_y=True)
X, y = X[:500] / 16, y[:500]
TOL = 1e-2


def check_losses() -> None:
    """Every loss reaches its certificate, whatever the data are."""
    for name in core.loss_names():
        top_k = {"top_k": 3} if name.startswith("top_k") else {}
        for data in (X, X.astype(np.float32), sparse.csr_array(X)):
            clf = LinearMulticlassSVC(loss=name, C=1.0, tol=TOL, **top_k).fit(data, y)
            assert clf.dual_gap_ <= TOL, (name, clf.dual_gap_)
            assert clf.score(data, y) > 0.9, name


def check_others() -> None:
    """Kernel machines and streams."""
    assert KernelMulticlassSVC(kernel="rbf", tol=TOL).fit(X, y).score(X, y) > 0.95
    assert LaRankClassifier(kernel="rbf").fit(X, y).score(X, y) > 0.9
    stream = LinearMulticlassSVC()
    for at in range(0, len(y), 100):
        stream.partial_fit(X[at : at + 100], y[at : at + 100], classes=np.arange(10))
    assert stream.score(X, y) > 0.8


def check_threads() -> None:
    """Threads that fit at once find what one alone finds, to the bit."""

    def fit(C: float) -> bytes:
        return LinearMulticlassSVC(C=C, tol=TOL, random_state=0).fit(X, y).coef_.tobytes()

    values = [0.1, 0.3, 1.0, 3.0] * 2
    with ThreadPoolExecutor(len(values)) as pool:
        assert list(pool.map(fit, values)) == [fit(C) for C in values]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "the compiled module turned the GIL on"


def check_files() -> None:
    """A model survives a file, and the command line reads it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pmz"
        clf = LinearMulticlassSVC(tol=TOL).fit(X, y)
        polymargin.save(clf, path)
        assert (polymargin.load(path).predict(X) == clf.predict(X)).all()
        run = [sys.executable, "-m", "polymargin"]
        told = subprocess.run([*run, "inspect", path], capture_output=True, text=True, check=True)
        assert "crammer_singer" in told.stdout
        told = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True)
        assert polymargin.__version__ in told.stdout


def main() -> int:
    """Run all checks."""
    if len(sys.argv) > 1 and polymargin.__version__ != sys.argv[1]:
        print(f"this is polymargin {polymargin.__version__}, not {sys.argv[1]}")
        return 1
    for check in (check_losses, check_others, check_threads, check_files):
        check()
    polymargin.show_versions()
    print("smoke test passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
