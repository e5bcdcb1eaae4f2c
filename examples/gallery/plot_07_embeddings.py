"""
A linear probe on embeddings
============================

Vectors that a network made, whose length means nothing: here a hundred classes of directions,
with lengths that vary by a factor of ten. With rows of unit length every example counts the
same, and ``C`` between 0.3 and 10 is nearly always right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import normalize

from polymargin import RegularizationPathDisplay, regularization_path

rng = np.random.default_rng(0)
n_classes, d, n = 100, 48, 4000
centres = normalize(rng.normal(size=(n_classes, d)))
y = rng.integers(n_classes, size=n)
vectors = normalize(centres[y] + 0.17 * rng.normal(size=(n, d)))
vectors = (vectors * rng.lognormal(1.0, 0.7, size=(n, 1))).astype(np.float32)
train, test = slice(0, 2000), slice(2000, None)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, X in (("as they are", vectors), ("unit rows", normalize(vectors))):
    path = regularization_path(
        X[train], y[train], np.logspace(-2, 1.5, 8), tol=1e-2, random_state=0
    )
    RegularizationPathDisplay.from_path(
        path, X[test], y[test], quantity="accuracy", ax=axes, name=name
    )
axes.set_title("100 classes, 20 examples each")
plt.show()
