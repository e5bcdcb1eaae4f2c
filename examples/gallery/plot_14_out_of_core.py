"""
Data larger than memory
=======================

A source of blocks goes to a directory, and the fit reads it from there, never holding more than
``memory_limit``. Nothing is approximate: only the order of the visits differs, and the duality
gap, estimated pass by pass and certified at the end, falls to the same tolerance.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from polymargin import LinearMulticlassSVC
from polymargin.io import BlockSource, write_blocks

centres = np.random.default_rng(0).normal(size=(20, 60)).astype(np.float32)


def blocks():
    for number in range(20):
        rng = np.random.default_rng(number)
        y = rng.integers(20, size=1500)
        X = centres[y] + 1.5 * rng.normal(size=(1500, 60)).astype(np.float32)
        yield (X / 16).astype(np.float32), y


figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
with tempfile.TemporaryDirectory() as folder:
    path = write_blocks(BlockSource(blocks), Path(folder) / "train.data")
    size = sum(file.stat().st_size for file in path.iterdir())
    for limit in (None, "6MB", "3MB"):
        clf = LinearMulticlassSVC(memory_limit=limit, tol=1e-3, random_state=0).fit(path)
        name = "all in memory" if limit is None else f"memory_limit={limit!r}"
        axes.plot(clf.history_["pass"], clf.history_["estimated_gap"], label=name)
        print(f"{name}: objective {clf.objective_:.5g}, gap {clf.dual_gap_:.1e}")
axes.set(
    xlabel="passes",
    ylabel="duality gap, estimated",
    yscale="log",
    title=f"{size / 1e6:.0f} MB on disk",
)
axes.legend()
plt.show()
