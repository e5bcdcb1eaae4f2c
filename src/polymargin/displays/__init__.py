"""Pictures in the shape of scikit-learn's displays; matplotlib is imported when one is drawn."""

from polymargin.displays.path import RegularizationPathDisplay

__all__ = ["RegularizationPathDisplay"]
