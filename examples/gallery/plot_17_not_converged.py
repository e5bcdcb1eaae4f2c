"""
What to do when it does not converge
====================================

``fit`` warns when ``max_iter`` passes were not enough, and says how far from the optimum the
model can be. Nearly always the data are not scaled: what counts is ``C`` times the mean squared
length of the rows.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import ConvergenceDisplay, DualSolver, LinearMulticlassSVC

X, y = load_wine(return_X_y=True)
print("features from", X.mean(axis=0).min().round(2), "to", X.mean(axis=0).max().round(2))

# the second-order phase, which would rescue small dense data, is off
sweeps = DualSolver(newton=False)
raw = LinearMulticlassSVC(tol=1e-5, max_iter=200, solver=sweeps, random_state=0)
scaled = make_pipeline(
    StandardScaler(), LinearMulticlassSVC(tol=1e-5, solver=sweeps, random_state=0)
)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    raw.fit(X, y)
    scaled.fit(X, y)
for warning in caught:
    print(warning.message)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
ConvergenceDisplay.from_estimator(raw, x="pass", name="as they are", ax=axes)
ConvergenceDisplay.from_estimator(scaled, x="pass", name="scaled", ax=axes)
plt.show()

# %%
# In this order:
#
# 1. scale the features (``StandardScaler``; ``Normalizer`` for texts and embeddings);
# 2. ask whether ``C`` need be that large: cross-validation often says no;
# 3. raise ``max_iter``, if the curve is still falling;
# 4. or take the model as it is: ``dual_gap_`` says how good it is.
