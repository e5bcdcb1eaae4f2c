"""Linear models in LIBLINEAR's text format.

A header (``solver_type``, ``nr_class``, ``label``, ``nr_feature``, ``bias``) is followed by ``w``
and a line per feature, with a number per class. Two classes have one number only (but for solver
type MCSVM_CS, of whose two the first decides), positive for the label that is listed first. With
``bias`` B >= 0 there is one more line, for a constant feature of value B.

Labels are integers there. Others are numbered 0, 1, ... in the model, and the list of them is kept
beside it, in ``<path>.labels.json``.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.arrays import Floats
from polymargin.estimators import LinearMulticlassSVC
from polymargin.fitted import Linear
from polymargin.losses import get_loss
from polymargin.models import ModelFileError
from polymargin.solvers.progress import History
from polymargin.storage import Array, StorageError, StringRoom, replacing

_LOSSES = {  # of the others, one-vs-rest scores are what counts
    "L2R_L2LOSS_SVC_DUAL": "one_vs_rest_squared",
    "L2R_L2LOSS_SVC": "one_vs_rest_squared",
    "MCSVM_CS": "crammer_singer",
}
CLASSIFIERS = (
    "L2R_LR",
    "L2R_L2LOSS_SVC_DUAL",
    "L2R_L2LOSS_SVC",
    "L2R_L1LOSS_SVC_DUAL",
    "MCSVM_CS",
    "L1R_L2LOSS_SVC",
    "L1R_LR",
    "L2R_LR_DUAL",
)
PathName = str | os.PathLike[str]
_LARGEST_LABEL = 2**31 - 1


def labels_path(path: PathName) -> Path:
    """Where the labels of a model with numbered labels are kept."""
    return Path(f"{os.fspath(path)}.labels.json")


def to_liblinear(model: Linear, path: PathName) -> None:
    """Write a linear model for LIBLINEAR's ``predict`` and whatever else reads its models.

    Parameters
    ----------
    model : LinearMulticlassSVC or LinearMulticlassSVCCV
        Fitted.
    path : path
        The file. Labels that are not 32-bit integers are numbered 0, 1, ... in it, in the order of
        ``classes_``, and go to ``<path>.labels.json``, which is removed where it is not needed.

    Notes
    -----
    The numbers are written in full, and LIBLINEAR computes in double precision: it gives the labels
    that the model gives, but where the two best scores differ by less than rounding does.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.export import to_liblinear
    >>> clf = LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.model")
    ...     to_liblinear(clf, path)
    ...     print(open(path).readline().strip())
    solver_type MCSVM_CS
    """
    if isinstance(model, Pipeline):
        raise ModelFileError(
            "LIBLINEAR's format holds a linear model only: export the last step of the pipeline, "
            "and give LIBLINEAR rows that the other steps have transformed."
        )
    if not isinstance(model, Linear):
        raise ModelFileError(
            f"LIBLINEAR's format holds linear models only, not {type(model).__name__}."
        )
    check_is_fitted(model)
    coef = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    weights = np.asarray(coef, dtype=np.float64).T
    labels, names = _numbered(model.classes_)
    if len(labels) == 2:  # a positive score is for the label that comes first
        labels = labels[::-1]
    has_bias = bool(np.any(model.intercept_))
    if has_bias:
        weights = np.vstack([weights, np.asarray(model.intercept_, dtype=np.float64)])
    coupled = get_loss(model.loss, model.top_k).coupled and len(labels) > 2
    squared = model.loss == _LOSSES["L2R_L2LOSS_SVC_DUAL"]
    separate = "L2R_L2LOSS_SVC_DUAL" if squared else "L2R_L1LOSS_SVC_DUAL"
    header = {
        "solver_type": "MCSVM_CS" if coupled else separate,
        "nr_class": len(labels),
        "label": " ".join(map(str, labels)),
        "nr_feature": coef.shape[1],
        "bias": 1 if has_bias else -1,
    }
    if names is not None:
        with replacing(labels_path(path)) as file:
            file.write(json.dumps(names, ensure_ascii=False, indent=0).encode())
    with replacing(path) as file:
        file.write("".join(f"{key} {value}\n" for key, value in header.items()).encode())
        file.write(b"w\n")
        for row in weights:
            file.write((" ".join(map(repr, row.tolist())) + " \n").encode())
    if names is None:
        labels_path(path).unlink(missing_ok=True)


def _numbered(classes: Array) -> tuple[list[int], list[str | int | float] | None]:
    """Labels as LIBLINEAR can have them, and the list that numbers stand for, if they do."""
    labels = classes.tolist()
    if all(type(label) is int and abs(label) <= _LARGEST_LABEL for label in labels):
        return labels, None
    if not all(isinstance(label, (str, int, float)) for label in labels):
        raise ModelFileError(f"labels of type {classes.dtype} cannot be written.")
    return list(range(len(labels))), labels


def from_liblinear(path: PathName) -> LinearMulticlassSVC:
    """Read a classifier that LIBLINEAR, or :func:`to_liblinear`, wrote.

    Parameters
    ----------
    path : path
        The model. Labels are named by ``<path>.labels.json`` if that exists.

    Returns
    -------
    LinearMulticlassSVC
        It predicts as LIBLINEAR does (rows whose best scores are exactly equal apart: here, the
        smallest label wins; there, the one listed first, or the second one of two). What a file
        does not tell, such as the duality gap, is NaN.

    Raises
    ------
    ModelFileError
        If it is no such file, or a model for regression, of one class, or with a kernel.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.export import from_liblinear, to_liblinear
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_liblinear(clf, os.path.join(folder, "iris.model"))
    ...     again = from_liblinear(os.path.join(folder, "iris.model"))
    >>> bool((again.predict(X) == clf.predict(X)).all())
    True
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        head, _, body = file.read().partition(b"\nw\n")
    header = _header(head, name)
    kind = header.get("solver_type", "")
    if kind not in CLASSIFIERS:
        what = "is not a classifier" if kind else "has no solver_type"
        raise _bad(name, f"its model {what} ({kind or 'damaged?'})")
    n_classes, n_features = (
        _integer(header.get(key, ""), name, key) for key in ("nr_class", "nr_feature")
    )
    if n_features < 1:
        raise _bad(name, f"nr_feature is {n_features}")
    bias = _bias(header.get("bias", ""), name)
    columns = 1 if n_classes == 2 and kind != "MCSVM_CS" else n_classes
    labels = [_integer(label, name) for label in header.get("label", "").split()]
    if n_classes < 2 or len(labels) != n_classes or len(set(labels)) != n_classes:
        raise _bad(name, f"{n_classes} classes with the labels {header.get('label')!r}")
    weights = _weights(body, n_features + (bias >= 0), columns, name)
    return _as_model(kind, weights, bias, n_features, _named(labels, path, name))


def _as_model(
    kind: str, weights: Floats, bias: float, n_features: int, labels: Array
) -> LinearMulticlassSVC:
    order = np.argsort(labels)
    if len(labels) == 2:  # the first column is positive for the first label
        weights = weights[:, :1] if order[1] == 0 else -weights[:, :1]
    else:
        weights = weights[:, order]
    model = LinearMulticlassSVC(loss=_LOSSES.get(kind, "one_vs_rest"), fit_intercept=bool(bias > 0))
    if bias > 0:
        model.set_params(intercept_scaling=bias)
    model.coef_ = np.ascontiguousarray(weights[:n_features].T)
    model.intercept_ = weights[n_features] * bias if bias >= 0 else np.zeros(weights.shape[1])
    model.classes_ = labels[order]
    model.n_features_in_ = n_features
    model.objective_ = model.dual_objective_ = model.dual_gap_ = float("nan")
    model.n_iter_ = 0
    model.history_ = {name: np.empty(0) for name in History.NAMES}
    return model


def _header(head: bytes, name: str) -> dict[str, str]:
    if head.startswith((b"svm_type", b"\nsvm_type")):
        raise _bad(name, "it is a LIBSVM model with a kernel, not one of LIBLINEAR")
    try:
        lines = head.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise _bad(name, "it is no text") from None
    pairs = (line.partition(" ") for line in lines if line.strip())
    return {key: value.strip() for key, _, value in pairs}


def _weights(body: bytes, rows: int, columns: int, name: str) -> NDArray[np.float64]:
    try:
        values = np.array(body.split(), dtype=np.float64)
    except ValueError as error:
        raise _bad(name, f"its weights are not numbers ({error})") from None
    if values.size != rows * columns:
        raise _bad(name, f"{values.size} weights, where its header promises {rows} x {columns}")
    if not np.isfinite(values).all():
        raise _bad(name, "its weights are not finite")
    return values.reshape(rows, columns)


def _named(labels: list[int], path: PathName, name: str) -> Array:
    beside = labels_path(path)
    if not beside.exists():
        return np.array(labels)
    try:
        names = json.loads(beside.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _bad(str(beside), f"it is not JSON ({error})") from None
    same_type = isinstance(names, list) and len({type(one) for one in names}) == 1
    if not same_type or not isinstance(names[0], (str, int, float)):
        raise _bad(str(beside), "it is not a list of labels")
    if not all(0 <= label < len(names) for label in labels) or len(set(names)) != len(names):
        raise _bad(name, f"its labels are not numbers of the {len(names)} names in {beside}")
    named = [names[label] for label in labels]
    if isinstance(names[0], str):
        try:
            StringRoom().take(named)
        except StorageError as error:
            raise _bad(str(beside), str(error)) from None
    return np.array(named)


def _integer(text: str, name: str, what: str = "a label") -> int:
    try:
        return int(text)
    except ValueError:
        raise _bad(name, f"{what} is {text!r}, not an integer") from None


def _bias(text: str, name: str) -> float:
    with suppress(ValueError):
        if math.isfinite(bias := float(text)):
            return bias
    raise _bad(name, f"bias is {text!r}, not a number")


def _bad(name: str, what: str) -> ModelFileError:
    return ModelFileError(f"{name} cannot be read as a LIBLINEAR model: {what}.")
