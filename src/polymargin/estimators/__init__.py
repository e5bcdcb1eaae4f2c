"""scikit-learn estimators: they validate, encode and wire; the solvers do the work."""

from polymargin.estimators.kernel import KernelMulticlassSVC
from polymargin.estimators.kernel_cv import KernelMulticlassSVCCV
from polymargin.estimators.larank import LaRankClassifier
from polymargin.estimators.linear import LinearMulticlassSVC
from polymargin.estimators.linear_cv import LinearMulticlassSVCCV

__all__ = [
    "KernelMulticlassSVC",
    "KernelMulticlassSVCCV",
    "LaRankClassifier",
    "LinearMulticlassSVC",
    "LinearMulticlassSVCCV",
]
