"""
partial_fit: classes that come late
===================================

A linear stream in constant memory. A class that nobody announced begins with zero weights, the
mean of all others: it neither wins nor loses before it has learned, and then it catches up.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin import LinearMulticlassSVC

rng = np.random.default_rng(0)
centres = rng.normal(size=(8, 40))


def draw(n, classes):
    y = rng.choice(classes, size=n)
    return (centres[y] + 1.5 * rng.normal(size=(n, 40))) / 10, y


clf = LinearMulticlassSVC(C=0.3)
X_test, y_test = draw(4000, np.arange(8))
old = y_test < 5
history = []
for batch in range(80):
    X, y = draw(20, np.arange(5) if batch < 40 else np.arange(8))
    clf.partial_fit(X, y)
    right = clf.predict(X_test) == y_test
    history.append((clf.n_samples_seen_, right[old].mean(), right[~old].mean()))

seen, of_old, of_late = np.transpose(history)
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
axes.plot(seen, of_old, label="five classes from the start")
axes.plot(seen, of_late, label="three classes that come late")
axes.axvline(800, color="grey", linestyle=":")
axes.set(xlabel="examples learned", ylabel="accuracy")
axes.legend()
plt.show()
