"""
Several machines, with Dask
===========================

The rows stay with the workers; only sums of the size of the weights travel. Whatever the
number of partitions, the certificate is of the same kind. Here the cluster is a few threads of
this process.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from polymargin.dask import DaskLinearMulticlassSVC

rng = np.random.default_rng(0)
centres = rng.normal(size=(10, 30))
y = rng.integers(10, size=2400)
X = (centres[y] + 1.5 * rng.normal(size=(2400, 30))) / 10

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
with cluster, Client(cluster) as client:
    for partitions in (2, 6):
        rows = len(y) // partitions
        data = da.from_array(X, chunks=(rows, 30)), da.from_array(y, chunks=rows)
        clf = DaskLinearMulticlassSVC(client=client, C=0.1, tol=1e-4, random_state=0).fit(*data)
        name = f"{partitions} partitions"
        axes.plot(clf.history_["pass"], clf.history_["gap"], "o-", label=name)
        print(f"{name}: objective {clf.objective_:.5g}, gap {clf.dual_gap_:.1e}")
axes.set(xlabel="rounds", ylabel="certified gap", yscale="log")
axes.legend()
plt.show()
