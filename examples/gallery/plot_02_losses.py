"""
The losses compared
===================

All losses on one data set, each over a grid of ``C``: they are on different scales, so their
best ``C`` differ, and a comparison at one ``C`` would say little. Compare the tops of the
curves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import LOSSES, RegularizationPathDisplay, regularization_path

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
Cs = np.logspace(-4, 1, 11)

figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
for number, loss in enumerate(LOSSES):
    top_k = 3 if loss.startswith("top_k") else None
    path = regularization_path(X_train, y_train, Cs, loss=loss, top_k=top_k, random_state=0)
    RegularizationPathDisplay.from_path(
        path,
        X_test,
        y_test,
        quantity="accuracy",
        ax=axes,
        name=loss,
        linestyle=("-", "--")[number % 2],
        markersize=4,
    )
axes.set(ylim=(0.85, 0.98), title="accuracy on the other half of the digits")
axes.legend(ncols=2)
plt.show()

# %%
# On a larger scale, with confidence in the differences: the page on the accuracy of the losses in
# the user guide.
