"""Memory that is refused: a MemoryError, and everything goes on working.

With a core built to refuse its n-th allocation (``make allocations``), every allocation of small
fits is refused in turn. With any other, the address space of a process is limited in steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from scipy import sparse

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
)
from polymargin.core import core
from polymargin.io import read_data
from tests.estimators import LOSS_PARAMS, make_problem

can_refuse = pytest.mark.skipif(
    not hasattr(core, "refuse_allocation"), reason="a core without POLYMARGIN_FAIL_ALLOCATIONS"
)
can_limit = pytest.mark.skipif(
    sys.platform != "linux" or "san" in os.environ.get("LD_PRELOAD", ""),
    reason="limits of the address space are Linux's, and sanitizers need all of it",
)
pytestmark = pytest.mark.filterwarnings("ignore")

X, Y = make_problem(60, 6, 3)
WIDE, MANY = np.random.default_rng(0).standard_normal((90, 70)), np.arange(90) % 40


def linear(X, y, *, loss="crammer_singer", top_k=None, n_jobs=1, **solver):
    clf = LinearMulticlassSVC(loss=loss, top_k=top_k, n_jobs=n_jobs, max_iter=6, random_state=0)
    return clf.set_params(solver=DualSolver(**solver)).fit(X, y).coef_


def stream(kind):
    clf = kind()
    for part in np.array_split(np.arange(60), 4):
        clf.partial_fit(X[part], Y[part], classes=np.unique(Y))
    return clf.decision_function(X)


def svmlight(folder):
    path = folder / "data.svm"
    if not path.exists():
        path.write_text("".join(f"{i % 3} {1 + i % 7}:0.5 9:{i}\n" for i in range(50)))
    return read_data(path).X.toarray()


WORKS = {
    **{one["loss"]: lambda folder, one=one: linear(X, Y, **one) for one in LOSS_PARAMS},
    "sparse": lambda folder: linear(sparse.csr_array(X * (X > 0)), Y),
    "single": lambda folder: linear(X, Y, precision="single"),
    "blocked": lambda folder: linear(WIDE, MANY, blocked=True, n_jobs=2),
    "by class": lambda folder: linear(WIDE, MANY, blocked="auto"),
    "ranges": lambda folder: linear(WIDE, MANY, loss="one_vs_rest", parallel=True, n_jobs=2),
    "newton": lambda folder: linear(X, Y, newton=True),
    "kernel": lambda folder: KernelMulticlassSVC(random_state=0).fit(X, Y).decision_function(X),
    "larank": lambda folder: LaRankClassifier(random_state=0).fit(X, Y).decision_function(X),
    "stream": lambda folder: stream(LinearMulticlassSVC),
    "svmlight": svmlight,
}


def refused(work, n):
    """What comes of work whose n-th allocation is refused."""
    core.refuse_allocation(n)
    try:
        return work(), None
    except MemoryError as error:
        return None, str(error)
    finally:
        core.refuse_allocation(-1)


@can_refuse
@pytest.mark.parametrize("name", WORKS)
def test_every_allocation_refused_in_turn(name, tmp_path, record_property):
    """A MemoryError that says something, or the same result without; no thread is left behind."""

    def work():
        return WORKS[name](tmp_path)

    expected = work()
    before = core.allocations()
    work()
    count = core.allocations() - before
    threads, n_refused = threading.active_count(), 0
    assert count > 0
    step = max(1, count // 1500)  # of the longest, some
    for n in range(0, count, step):
        found, error = refused(work, n)
        n_refused += error is not None
        assert error is None or "memory" in error, error
        if found is not None:  # it does without: a thread less, smaller pages
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(work(), expected)
    assert n_refused > 0 and threading.active_count() == threads
    record_property("refused", n_refused)
    print(f"{name}: {count} allocations, {n_refused} of {len(range(0, count, step))} refused")


@can_refuse
@pytest.mark.parametrize("kind", [LinearMulticlassSVC, LaRankClassifier])
def test_a_stream_goes_on_or_says_why_not(kind):
    """After a batch that met a refusal, the object predicts and learns on; no crash.

    LaRank's machine may not: a step changes much at once.
    """
    parts = np.array_split(np.arange(60), 4)
    begun = kind(random_state=0).partial_fit(X, Y, classes=np.unique(Y))
    before = core.allocations()
    begun.partial_fit(X[parts[1]], Y[parts[1]])
    for n in range(core.allocations() - before):
        clf = kind(random_state=0).partial_fit(X[parts[0]], Y[parts[0]], classes=np.unique(Y))
        refused(lambda clf=clf: clf.partial_fit(X[parts[1]], Y[parts[1]]), n)
        try:
            clf.partial_fit(X[parts[2]], Y[parts[2]])
            assert np.isfinite(clf.decision_function(X)).all()
        except RuntimeError as error:
            if kind is LinearMulticlassSVC or "is not whole" not in str(error):
                raise
            again = clf.fit(X, Y).decision_function(X)
            np.testing.assert_array_equal(
                again, kind(random_state=0).fit(X, Y).decision_function(X)
            )


LIMITED = """
import json, resource, sys, warnings
import numpy as np
from polymargin import LinearMulticlassSVC, KernelMulticlassSVC
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d, k = 20_000, 40, 50
y = rng.integers(k, size=n)
X = rng.standard_normal((n, d)) + rng.standard_normal((k, d))[y]
makers = {
    "sparse dual": lambda: LinearMulticlassSVC(max_iter=3, random_state=0),
    "dense dual": lambda: LinearMulticlassSVC(loss="softmax", max_iter=2, random_state=0),
}
def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
small = slice(0, 500)
for make in makers.values():  # what is loaded on the way, and threads of libraries
    make().fit(X[small], y[small])
before = resource.getrlimit(resource.RLIMIT_AS)
found = []
for name, make in makers.items():
    clf = make()
    for step in [0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 512]:
        resource.setrlimit(resource.RLIMIT_AS, (now() + step * 2**20, before[1]))
        try:
            clf.fit(X, y)
            what = "fitted"
        except MemoryError as error:
            what = str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
        found.append([name, step, what])
    again = clf.fit(X[small], y[small]).coef_  # it is as usable as a new one
    assert np.allclose(again, make().fit(X[small], y[small]).coef_, atol=1e-2)
print(json.dumps(found))
"""


@can_limit
def test_a_limited_address_space():
    """From no room at all to enough: fits or MemoryErrors that say of what, and how large."""
    command = [sys.executable, "-c", textwrap.dedent(LIMITED)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert child.returncode == 0, child.stderr[-3000:]
    found = json.loads(child.stdout)
    assert {what for name, step, what in found if step == 512} == {"fitted"}
    errors = [what for *_, what in found if what != "fitted"]
    assert errors and all("bad_alloc" not in what for what in errors)
    assert all(any(c.isdigit() for c in what) or "buffer" in what for what in errors), errors


ONE_STACK = """
import resource, sys, warnings
import numpy as np
from polymargin import DualSolver, LinearMulticlassSVC
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d, k = 3000, 70, 40
y = np.arange(n) % k
X = rng.standard_normal((n, d)) + rng.standard_normal((k, d))[y]
clf = LinearMulticlassSVC(n_jobs=4, max_iter=3, random_state=0, solver=DualSolver(blocked=True))
clf.fit(X, y)
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]), before[1]))
try:
    clf.fit(X, y)
except MemoryError as error:
    print(error)
finally:
    resource.setrlimit(resource.RLIMIT_AS, before)
clf.fit(X, y)
"""


@can_limit
def test_room_for_the_stack_of_a_thread_and_nothing_else():
    """A thread that starts where no memory is left for its first exception does nothing."""
    import resource

    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    stack = 2**23 if stack == resource.RLIM_INFINITY else stack
    for more in (4, 12, 24):
        command = [sys.executable, "-c", ONE_STACK, str(stack + more * 1024)]
        child = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert child.returncode == 0, child.stderr[-3000:]
