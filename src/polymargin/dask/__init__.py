"""Training on several machines, with Dask: ``pip install polymargin[dask]``.

Nothing else of polymargin imports Dask.
"""

from polymargin.dask.estimator import DaskLinearMulticlassSVC

__all__ = ["DaskLinearMulticlassSVC"]
