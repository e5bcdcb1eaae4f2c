"""Plots for notebooks, in the shape of scikit-learn's displays; they need matplotlib."""

from polymargin.displays._confused_pairs import ConfusedPairsDisplay
from polymargin.displays._convergence import ConvergenceDisplay
from polymargin.displays._path import RegularizationPathDisplay

__all__ = ["ConfusedPairsDisplay", "ConvergenceDisplay", "RegularizationPathDisplay"]
