"""A soak: random fits, streams, files, interrupts and kills; memory, descriptors, threads flat.

``python tools/soak.py --seconds 3600`` (``make soak``). One process does all kinds of work, and is
interrupted at random moments; children train with checkpoints and are interrupted or killed, and
what they leave is gone on from. At the end a line through the second half of the samples must be
flat: of memory, of open descriptors, and of threads; and nothing temporary may be left.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from scipy import sparse

import polymargin
from polymargin import (
    Checkpoint,
    DualSolver,
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
)
from polymargin.io import Dataset, read_data, write_directory, write_svmlight

MOST_GROWTH = 8 * 2**20  # bytes, in the second half, and
MOST_PART = 0.03  # of the memory: what the allocator keeps here and there
LOSSES = ("crammer_singer", "weston_watkins", "one_vs_rest", "softmax", "one_vs_rest_squared")
CHILD = """
import sys, warnings
import numpy as np
from polymargin import Checkpoint, LinearMulticlassSVC
warnings.simplefilter("ignore")
rng = np.random.default_rng(int(sys.argv[2]))
y = np.arange(600) % 5
X = rng.standard_normal((600, 20)) + y[:, None]
print("ready", flush=True)
place = Checkpoint(sys.argv[1], every=None, passes=1)
clf = LinearMulticlassSVC(C=5.0, tol=1e-9, max_iter=400, random_state=0, checkpoint=place)
clf.fit(X, y)
"""


class Soak:
    """The work, in a folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, np.random.default_rng(seed)
        self.done: Counter[str] = Counter()
        self.stream = LinearMulticlassSVC()
        self.larank = LaRankClassifier(random_state=0)

    def data(self) -> tuple[np.ndarray | sparse.csr_array, np.ndarray]:
        """Random rows and labels."""
        rng = self.rng
        n, k = int(rng.integers(30, 400)), int(rng.integers(2, 7))
        y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
        X = rng.standard_normal((n, 10)).astype(rng.choice([np.float32, np.float64]))
        X[:, 0] += y
        return (sparse.csr_array(X * (np.abs(X) > 0.7)) if rng.random() < 0.5 else X), y

    def linear(self) -> None:
        """A fit, its file, and what comes back."""
        X, y = self.data()
        solver = DualSolver(precision=str(self.rng.choice(["auto", "single", "double"])))
        clf = LinearMulticlassSVC(loss=str(self.rng.choice(LOSSES)), n_jobs=2, solver=solver)
        clf.fit(X, y)
        polymargin.save(clf, self.folder / "model.pmz")
        again = polymargin.load(self.folder / "model.pmz")
        assert np.array_equal(again.predict(X), clf.predict(X))

    def kernel(self) -> None:
        """A kernel machine."""
        X, y = self.data()
        KernelMulticlassSVC(C=float(10 ** self.rng.uniform(-1, 1)), n_jobs=2).fit(X, y).predict(X)

    def streams(self) -> None:
        """Batches of a stream; begun anew at times, as what is learned grows."""
        if self.rng.random() < 0.2:
            self.stream, self.larank = LinearMulticlassSVC(), LaRankClassifier(random_state=0)
        for clf in (self.stream, self.larank):
            y = self.rng.integers(4, size=40)
            X = self.rng.standard_normal((40, 10)) + y[:, None]
            clf.partial_fit(X, y, classes=np.arange(4))
            clf.predict(X)

    def files(self) -> None:
        """Data written and read."""
        X, y = self.data()
        write_svmlight(Dataset(X=X, y=y), self.folder / "data.svm")
        write_directory(Dataset(X=X, y=y), self.folder / "data", overwrite=True)
        read_data(self.folder / "data.svm")
        read_data(self.folder / "data")

    def killed(self) -> None:
        """A child that is killed or interrupted goes on, here, to the end."""
        path, seed = self.folder / "fit", str(self.rng.integers(10))
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", CHILD, str(path), seed]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(float(self.rng.uniform(0.0, 0.3)))
            child.send_signal(self.rng.choice([signal.SIGKILL, signal.SIGINT]))
        rng = np.random.default_rng(int(seed))
        y = np.arange(600) % 5
        X = rng.standard_normal((600, 20)) + y[:, None]
        clf = LinearMulticlassSVC(C=5.0, tol=1e-9, max_iter=400, random_state=0)
        clf.set_params(checkpoint=Checkpoint(path, every=None, passes=10)).fit(X, y)
        self.done["kills"] += 1

    def step(self) -> None:
        """One piece of work; one in three is interrupted at some moment."""
        works: list[Callable[[], None]] = [
            *(self.linear, self.kernel, self.streams, self.files),
            *([self.killed] if self.rng.random() < 0.2 else []),
        ]
        work = works[self.rng.integers(len(works))]
        may_be = work != self.killed and self.rng.random() < 0.33
        try:
            with interrupted_after(float(self.rng.uniform(0, 0.1)) if may_be else 0.0):
                work()
        except KeyboardInterrupt:
            self.done["interrupts"] += 1
            if work == self.streams:  # it may have learned a part of a batch
                self.stream, self.larank = LinearMulticlassSVC(), LaRankClassifier(random_state=0)
        self.done[work.__name__] += 1


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C after some seconds, if the block takes as long; 0: never."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def sample(process: psutil.Process) -> tuple[float, float, float]:
    """Memory, descriptors, threads."""
    return process.memory_info().rss, process.num_fds(), process.num_threads()


def growth(values: np.ndarray) -> float:
    """What a line through the second half of the samples rises by."""
    second = values[len(values) // 2 :]
    slope = np.polyfit(np.arange(len(second)), second, 1)[0]
    return float(slope * len(second))


def main() -> int:
    """Soak, and say what was done and what has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    process, samples = psutil.Process(), []
    with tempfile.TemporaryDirectory() as folder:
        soak, end = Soak(Path(folder), chosen.seed), time.monotonic() + chosen.seconds
        while time.monotonic() < end:
            soak.step()
            samples.append(sample(process))
        left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    memory, descriptors, threads = (np.array(column) for column in zip(*samples, strict=True))
    grown = growth(memory), growth(descriptors), growth(threads)
    print(f"{chosen.seconds:.0f} s: {len(samples)} pieces of work, {dict(soak.done)}")
    print(
        f"second half: memory {memory[-1] / 2**20:.0f} MB, {grown[0] / 2**20:+.1f}; descriptors "
        f"{descriptors[-1]:.0f}, {grown[1]:+.1f}; threads {threads[-1]:.0f}, {grown[2]:+.1f}"
    )
    print(f"temporary files left: {left or 'none'}")
    room = max(MOST_GROWTH, MOST_PART * memory.max())
    flat = grown[0] <= room and grown[1] <= 1.0 and grown[2] <= 1.0
    return 0 if flat and not left else 1


if __name__ == "__main__":
    sys.exit(main())
