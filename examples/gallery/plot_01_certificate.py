"""
The certificate closing
=======================

Every certificate is two numbers: the objective of the model at hand, and a lower bound on the
objective of *every* model. The optimum lies between them, so the distance of the two says how
good the model is, and training stops when it is at most ``tol``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from polymargin import ConvergenceDisplay, LinearMulticlassSVC

X, y = load_digits(return_X_y=True)
clf = LinearMulticlassSVC(C=1.0, tol=1e-5, random_state=0).fit(X / 16, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
ConvergenceDisplay.from_estimator(clf, kind="objective", x="pass", name="digits", ax=left)
left.set(title="the optimum lies between", ylim=(110, 130))
left.legend(loc="upper right", fontsize=8)
ConvergenceDisplay.from_estimator(clf, x="pass", name="digits", ax=right)
right.set_title("their relative distance")
plt.show()

# %%
# What was proven is an attribute of the model.

print(f"objective {clf.objective_:.5f}; no model is below {clf.dual_objective_:.5f}")
print(f"relative gap {clf.dual_gap_:.1e} after {clf.n_iter_} passes")
