"""
Probabilities of any loss
=========================

The scores of a support vector machine are no probabilities, and their softmax is not as sure as
it should be. ``probability=True`` fits one number, a temperature, on examples that are held
out. Points on the diagonal are as often right as they say.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import LinearMulticlassSVC

X, y = load_digits(return_X_y=True)
X = X / 16 + np.random.default_rng(0).normal(scale=0.4, size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

clf = LinearMulticlassSVC(C=0.1, probability=True, random_state=0).fit(X_train, y_train)
probabilities = {
    "softmax of the scores": softmax(clf.decision_function(X_test), axis=1),
    f"probability=True, temperature {clf.temperature_:.2f}": clf.predict_proba(X_test),
}

figure, axes = plt.subplots(figsize=(5, 4.8), layout="constrained")
axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
for name, found in probabilities.items():
    sure, right = found.max(axis=1), clf.classes_[found.argmax(axis=1)] == y_test
    bins = np.array_split(np.argsort(sure), 8)
    axes.plot([sure[b].mean() for b in bins], [right[b].mean() for b in bins], "o-", label=name)
axes.set(xlabel="how sure it is", ylabel="how often it is right", xlim=(0, 1.02), ylim=(0, 1.02))
axes.legend(loc="lower right")
plt.show()
