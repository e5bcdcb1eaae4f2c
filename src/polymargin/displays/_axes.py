"""What the displays share: axes to draw on, and the classifier inside of a pipeline."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def new_axes(display: str, ax: Any, **figure: Any) -> Any:
    """Give `ax`, or axes in a new figure; matplotlib is imported here and nowhere else."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display}.plot needs matplotlib: pip install 'polymargin[plot]'"
        ) from error
    return plt.subplots(**figure)[1] if ax is None else ax


def final_estimator(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model
