"""
Confused pairs
==============

With many classes a confusion matrix is too large to look at. Its largest entries are not: which
class is taken for which, how often, and how much of the true class that is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import ConfusedPairsDisplay, LinearMulticlassSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
clf = LinearMulticlassSVC(C=0.1, random_state=0).fit(X_train, y_train)
ConfusedPairsDisplay.from_estimator(clf, X_test, y_test, n_pairs=10)
plt.show()
