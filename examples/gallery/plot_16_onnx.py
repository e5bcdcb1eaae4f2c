"""
Exporting to ONNX
=================

A model for programs without Python: labels, and scores that agree with ours to single
precision.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import LinearMulticlassSVC
from polymargin.export import to_onnx

X, y = load_digits(return_X_y=True)
model = make_pipeline(StandardScaler(), LinearMulticlassSVC(C=0.1, random_state=0)).fit(X, y)

proto = to_onnx(model)  # to_onnx(model, "digits.onnx") writes a file
session = onnxruntime.InferenceSession(proto.SerializeToString())
labels, scores = session.run(["label", "scores"], {"X": X.astype(np.float32)})
print("the same labels:", np.array_equal(labels, model.predict(X)))

figure, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
ours = model.decision_function(X)
axes.plot(ours.ravel(), scores.ravel(), ".", markersize=2)
axes.set(
    xlabel="our scores",
    ylabel="scores of the ONNX runtime",
    title=f"largest difference {np.abs(ours - scores).max():.0e}",
)
plt.show()
