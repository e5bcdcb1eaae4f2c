"""
LaRank: new classes on a stream
===============================

``LaRankClassifier`` learns a kernel machine one example at a time. Classes need not be known
beforehand: here a new digit appears every 150 examples, and the accuracy on all digits seen so
far hardly notices.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from polymargin import LaRankClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
rng = np.random.default_rng(0)
order = rng.permutation(len(y))
train, test = order[:1300], order[1300:]

clf = LaRankClassifier(gamma=0.05, C=10.0, random_state=0)
seen, accuracy, arrivals, left = [], [], [], list(train)
known = 2
while left:
    if len(seen) % 150 == 0 and seen and known < 10:
        known += 1
        arrivals.append(len(seen))
    batch = [i for i in left if y[i] < known][:25]
    if not batch:
        break
    left = [i for i in left if i not in set(batch)]
    clf.partial_fit(X[batch], y[batch])
    seen += batch
    there = test[np.isin(y[test], clf.classes_)]
    accuracy.append((len(seen), clf.score(X[there], y[there])))

figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
axes.plot(*np.transpose(accuracy))
for arrival in arrivals:
    axes.axvline(arrival, color="grey", linewidth=0.8, linestyle=":")
axes.set(
    xlabel="examples learned (dotted: a new digit)",
    ylabel="accuracy on the digits seen so far",
    ylim=(0.8, 1.01),
)
plt.show()
