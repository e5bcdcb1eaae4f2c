"""What the displays share: axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


class Display:
    """Something that is drawn on axes; matplotlib is imported here and nowhere else."""

    ax_: Axes
    figure_: FigureBase

    def _take_axes(self, ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
        """Draw on `ax`, or on axes in a new figure."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__}.plot needs matplotlib: pip install 'polymargin[plot]'"
            ) from error
        layout = None if figsize is None else "constrained"
        self.ax_ = plt.subplots(figsize=figsize, layout=layout)[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_
