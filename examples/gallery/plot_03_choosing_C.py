"""
Choosing C by cross-validation
==============================

``LinearMulticlassSVCCV`` trains the models of a grid of ``C`` one from the other, in all folds,
and stops going up when the score has clearly passed its peak: the largest values are the
expensive ones.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from polymargin import LinearMulticlassSVCCV, RegularizationPathDisplay

X, y = load_digits(return_X_y=True)
clf = LinearMulticlassSVCCV(Cs=12, cv=5, random_state=0).fit(X / 16, y)

display = RegularizationPathDisplay.from_cv(clf)
display.ax_.set_title(f"C = {clf.C_:.3g}: {clf.best_score_:.1%} in five folds")
plt.show()

# %%
# Values that were not tried have no score.

for C, score in zip(clf.Cs_, clf.scores_.mean(axis=0), strict=True):
    print(f"C = {C:8.4f}  {score:.4f}")
