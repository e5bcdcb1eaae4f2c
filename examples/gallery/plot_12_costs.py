"""
Mistakes that do not cost the same
==================================

Nine classes in three groups that are further apart than the classes within them. A mistake
within a group costs 1, one across groups 4. Trained with these costs as margins, the model
moves its mistakes to where they are cheap. How much that is worth depends on the data: compare
the mean cost, as here.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin import LinearMulticlassSVC
from polymargin.costs import mean_cost

rng = np.random.default_rng(0)
groups = rng.normal(size=(3, 8))
centres = np.repeat(groups, 3, axis=0) + 0.3 * rng.normal(size=(9, 8))
y = rng.integers(9, size=6000)
X = centres[y] + 1.6 * rng.normal(size=(6000, 8))
X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
group = np.arange(9) // 3
costs = np.where(group[:, None] == group, 1.0, 4.0)
np.fill_diagonal(costs, 0.0)

figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for panel, name, matrix in zip(panels, ("plain", "with costs"), (None, costs), strict=True):
    clf = LinearMulticlassSVC(C=0.1, cost_matrix=matrix, random_state=0).fit(X_train, y_train)
    predicted = clf.predict(X_test)
    counts = np.zeros((9, 9))
    np.add.at(counts, (y_test, predicted), 1)
    np.fill_diagonal(counts, np.nan)
    picture = panel.imshow(counts, cmap="Blues", vmin=0, vmax=200)
    for border in (2.5, 5.5):
        panel.axhline(border, color="black", linewidth=0.8)
        panel.axvline(border, color="black", linewidth=0.8)
    cost = mean_cost(y_test, predicted, costs)
    wrong = np.mean(predicted != y_test)
    panel.set(title=f"{name}: mean cost {cost:.2f}, {wrong:.0%} wrong", xlabel="predicted")
panels[0].set_ylabel("true")
figure.colorbar(picture, ax=panels, label="mistakes")
plt.show()
