"""
A kernel machine beside SVC
===========================

``SVC`` trains a machine for every pair of classes and lets them vote; ``KernelMulticlassSVC``
solves one problem over all classes, so that scores of classes compare, and certifies it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from polymargin import KernelMulticlassSVC

rng = np.random.default_rng(0)
n_classes = 5
y = np.repeat(np.arange(n_classes), 80)
radius = np.linspace(0.1, 1.0, 80)[np.arange(y.size) % 80]
angle = 2 * np.pi * y / n_classes + 3.5 * radius + 0.25 * rng.normal(size=y.size)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

ticks = np.linspace(-1.2, 1.2, 200)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
models = {
    "SVC": SVC(gamma=10.0, C=10.0),
    "KernelMulticlassSVC": KernelMulticlassSVC(gamma=10.0, C=10.0, random_state=0),
}
for panel, (name, model) in zip(panels, models.items(), strict=True):
    model.fit(X, y)
    regions = model.predict(grid).reshape(200, 200)
    panel.contourf(ticks, ticks, regions, levels=np.arange(-0.5, n_classes), cmap="Set2", alpha=0.5)
    panel.scatter(*X.T, c=y, cmap="Set2", s=12, edgecolors="black", linewidths=0.3)
    panel.set(title=f"{name}: {model.support_.size} support vectors", xticks=[], yticks=[])
plt.show()

print(f"certified gap {models['KernelMulticlassSVC'].dual_gap_:.1e}")
