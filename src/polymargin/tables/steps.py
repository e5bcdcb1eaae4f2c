"""The steps of a pipeline before its classifier, for a table: scikit-learn's own transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from polymargin.tables.columns import TableColumns
from polymargin.tables.decide import Column

RARE = 3  # categories of fewer examples than this share a feature, with those never seen
MOST_CATEGORIES = 1000  # of one column that have a feature of their own

Steps = list[tuple[str, BaseEstimator]]


def table_steps(
    columns: Sequence[Column],
    *,
    scaler: BaseEstimator | Literal["standard"] | None = "standard",
    words: Callable[[], BaseEstimator] = TfidfVectorizer,
    dtype: DTypeLike = np.float64,
) -> Steps:
    """Make the steps from a table to numbers.

    Parameters
    ----------
    columns : sequence of Column
        What :func:`decide` said.
    scaler : transformer, "standard" or None
        For the numbers: "standard" is a StandardScaler, None leaves them as they are.
    words : callable
        Makes the transformer of a column of text.
    dtype : dtype, default=float64
        Of the one-hot features.

    Returns
    -------
    list of (str, transformer)
        A `TableColumns` and a `ColumnTransformer`.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.tables import decide, table_steps
    >>> table = {"price": ["1.5", "2", "7", "8"], "country": ["FR", "DE", "FR", "DE"]}
    >>> steps = [*table_steps(decide(table)), ("svm", LinearMulticlassSVC(random_state=0))]
    >>> Pipeline(steps).fit(table, ["a", "a", "b", "b"]).predict(table).tolist()
    ['a', 'a', 'b', 'b']
    """
    used = [one for one in columns if one.kind is not None]
    first = TableColumns(
        {one.name: str(one.kind) for one in used},
        {one.name: one.decimal for one in used if one.decimal != "."} or None,
        {one.name: one.about for one in columns},
    )
    parts: list[tuple[str, BaseEstimator, list[int] | int]] = []
    numbers = first.places("number", "date", "time")
    if numbers:
        imputer = SimpleImputer(add_indicator=True)
        scaled = [] if scaler is None else [("scale", scaler)]
        if scaler == "standard":
            scaled = [("scale", StandardScaler())]
        parts.append(("numbers", Pipeline([("impute", imputer), *scaled]), numbers))
    categories = first.places("category")
    if categories:
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=RARE,
            max_categories=MOST_CATEGORIES,
            dtype=dtype,
        )
        parts.append(("categories", encoder, categories))
    names = first.get_feature_names_out()
    parts += [
        (f"words of {names[place]}".replace("__", "_ _"), words(), place)
        for place in first.places("text")
    ]
    return [("table", first), ("columns", ColumnTransformer(parts))]
