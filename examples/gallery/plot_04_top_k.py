"""
Top-k: when classes are ambiguous
=================================

Forty classes in groups of four whose members look nearly the same: nobody can get the first
guess right, but four guesses may be enough. A top-k loss does not insist on what cannot be had;
nor does softmax, which is hard to beat where classes overlap.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin import LinearMulticlassSVC

rng = np.random.default_rng(0)
groups = rng.normal(size=(10, 20))
centres = np.repeat(groups, 4, axis=0) + 0.25 * rng.normal(size=(40, 20))
y = rng.integers(40, size=6000)
X = centres[y] + 0.8 * rng.normal(size=(6000, 20))
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

ks = np.arange(1, 7)
figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for loss, top_k, style in (
    ("crammer_singer", None, "o-"),
    ("top_k_beta", 4, "s-"),
    ("top_k_alpha", 4, "^-"),
    ("softmax", None, "D--"),
):
    clf = LinearMulticlassSVC(loss=loss, top_k=top_k, C=0.01, random_state=0).fit(X_train, y_train)
    ranked = clf.predict_top_k(X_test, k=6)
    hit = ranked == y_test[:, None]
    name = loss if top_k is None else f"{loss}, top_k={top_k}"
    axes.plot(ks, hit.cumsum(axis=1).mean(axis=0), style, label=name)
axes.set(xlabel="guesses allowed", ylabel="accuracy", title="forty classes in groups of four")
axes.legend()
plt.show()
