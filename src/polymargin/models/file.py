"""Model files: save, load, and look at one without loading it. See docs/files_and_models.md."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from polymargin.arrays import Attributes
from polymargin.models.known import (
    ModelFileError,
    check_can_be_saved,
    decode_object,
    encode_object,
)
from polymargin.storage import (
    Archive,
    Array,
    Decoder,
    Encoder,
    Format,
    Json,
    StorageError,
    StrPath,
    write_archive,
)
from polymargin.tables import TableColumns, describe_columns

FORMAT = Format("polymargin-model", 1, must_be_sealed=False)  # the first files had no seals
Note = str | int | float | bool | None
_CERTIFICATE = ("objective_", "dual_objective_", "dual_gap_", "n_iter_")
_LIBRARIES = ("polymargin", "scikit-learn", "numpy")


def save(model: object, path: StrPath, *, notes: Mapping[str, Note] | None = None) -> None:
    """Write a fitted model to a file.

    The file (by custom ``.pmz``) holds arrays and JSON, no pickle: opening it cannot run code. It
    is written beside its place and then renamed, so that whatever happens there is the old file or
    the new one, never a part.

    Parameters
    ----------
    model : LinearMulticlassSVC, LinearMulticlassSVCCV, KernelMulticlassSVC, \
            KernelMulticlassSVCCV, LaRankClassifier, CalibratedClassifierCV or Pipeline
        Fitted. A pipeline has one of these as its last step, and before it any of scikit-learn's
        TfidfVectorizer, CountVectorizer, HashingVectorizer, TfidfTransformer, StandardScaler,
        MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, SimpleImputer and ColumnTransformer
        (of these, and of pipelines of them), or a TableColumns.
    path : path
        The file, which is replaced if it exists.
    notes : mapping of str to str, int, float, bool or None, optional
        What else to keep in the file; :func:`~polymargin.io.inspect_model` gives it back.

    Raises
    ------
    ModelFileError
        For a model with a part that such a file cannot hold, such as a function.

    Examples
    --------
    >>> import os, tempfile
    >>> import polymargin
    >>> from sklearn.datasets import load_iris
    >>> clf = polymargin.LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     polymargin.save(clf, os.path.join(folder, "iris.pmz"))
    """
    check_can_be_saved(model)
    encoder = Encoder(encode_object)
    try:
        tree = encoder.encode(model, "")
    except StorageError as error:
        raise ModelFileError(
            f"{error}, which a model file cannot hold: it holds numbers, strings, arrays and known "
            "classes only, so that opening one cannot run code. Use joblib or skops to keep such a "
            "model."
        ) from error
    versions = {library: importlib.metadata.version(library) for library in _LIBRARIES}
    manifest = {"written_with": versions, "notes": dict(notes or {}), "model": tree}
    write_archive(path, FORMAT, manifest, encoder.arrays)


def load(path: StrPath) -> Any:
    """Read a model that :func:`save` wrote.

    Parameters
    ----------
    path : path
        The file. It may come from anyone: it cannot run code.

    Returns
    -------
    LinearMulticlassSVC, LinearMulticlassSVCCV, KernelMulticlassSVC, KernelMulticlassSVCCV, \
            LaRankClassifier or Pipeline
        The fitted model. What it was trained from is not in it: with ``warm_start=True``, the next
        `fit` starts afresh. LaRank goes on learning where it was, a linear stream from its weights.

    Raises
    ------
    ModelFileError
        If the file is no model, cut short, damaged, or of a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> import polymargin
    >>> from sklearn.datasets import load_iris
    >>> clf = polymargin.LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     polymargin.save(clf, os.path.join(folder, "iris.pmz"))
    ...     again = polymargin.load(os.path.join(folder, "iris.pmz"))
    >>> bool((again.coef_ == clf.coef_).all())
    True
    """
    with _opened(path) as archive:
        model = Decoder(archive.array, decode_object).decode(archive.manifest["model"])
        check_can_be_saved(model)
        return model


@dataclass(frozen=True)
class ModelCard:
    """What a model file says about its model.

    Attributes
    ----------
    kind : str
        The class of the estimator.
    steps : list of str
        The classes of a pipeline's steps; only `kind` where there is no pipeline.
    params : dict
        Parameters of the estimator.
    certificate : dict
        "objective", "dual_objective", "dual_gap" and "n_iter".
    classes : ndarray
        The labels.
    n_features : int
        Number of features of the estimator.
    feature_names : list of str or None
        Their names, where they are known.
    file_bytes : int
        Size of the file.
    format_version : int
        Version of the file's format.
    written_with : dict
        Versions of the libraries.
    notes : dict
        What whoever saved the model noted.
    columns : list of (str, str) or None
        Columns of tables, and what becomes of each, where the model reads tables.
    temperature : float or None
        What scores are divided by for probabilities, where it was fitted.

    Examples
    --------
    >>> import os, tempfile
    >>> import polymargin
    >>> from sklearn.datasets import load_iris
    >>> clf = polymargin.LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.pmz")
    ...     polymargin.save(clf, path, notes={"fold": 3})
    ...     card = polymargin.io.inspect_model(path)
    >>> card.n_features, card.notes
    (4, {'fold': 3})
    """

    kind: str
    steps: list[str]
    params: Attributes
    certificate: Attributes
    classes: Array = field(repr=False)
    n_features: int
    feature_names: list[str] | None = field(repr=False)
    file_bytes: int
    format_version: int
    written_with: dict[str, str]
    notes: dict[str, Note]
    columns: list[tuple[str, str]] | None = field(default=None, repr=False)
    temperature: float | None = None


def inspect_model(path: StrPath) -> ModelCard:
    """Describe a model file without reading its weights.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    ModelCard
        The description.

    Examples
    --------
    >>> import os, tempfile
    >>> import polymargin
    >>> from sklearn.datasets import load_iris
    >>> clf = polymargin.LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.pmz")
    ...     polymargin.save(clf, path)
    ...     card = polymargin.io.inspect_model(path)
    >>> card.n_features
    4
    """
    with _opened(path) as archive:
        tree = archive.manifest["model"]
        steps = [tree]
        if tree["$object"] == "sklearn.Pipeline":
            steps = [step[1] for step in tree["params"]["steps"]]
        last = steps[-1]
        decoder, state = Decoder(archive.array, _described), last["state"]
        names = decoder.decode(state.get("feature_names_in_"))
        certificate = {key.rstrip("_"): decoder.decode(state.get(key)) for key in _CERTIFICATE}
        return ModelCard(
            kind=_class_name(last),
            steps=[_class_name(step) if isinstance(step, dict) else str(step) for step in steps],
            params={key: decoder.decode(value) for key, value in last["params"].items()},
            certificate=certificate,
            classes=decoder.decode(state.get("classes_")),
            n_features=int(state["n_features_in_"]),
            feature_names=None if names is None else names.tolist(),
            file_bytes=archive.size,
            format_version=int(archive.manifest["version"]),
            written_with=dict(archive.manifest.get("written_with", {})),
            notes=dict(archive.manifest.get("notes", {})),
            columns=_columns(steps[0], decoder),
            temperature=decoder.decode(state.get("temperature_")),
        )


def _columns(step: Json, decoder: Decoder) -> list[tuple[str, str]] | None:
    if not isinstance(step, dict) or _class_name(step) != TableColumns.__name__:
        return None
    kinds, about = (decoder.decode(step["params"][key]) for key in ("kinds", "about"))
    return describe_columns(kinds, about)


def _described(encoded: dict[str, Json], decoder: Decoder) -> Attributes:
    """An object that is a parameter (a solver), as its class and parameters."""
    params = {key: decoder.decode(value) for key, value in encoded["params"].items()}
    return {"class": _class_name(encoded), **params}


def _class_name(encoded: dict[str, Json]) -> str:
    return str(encoded["$object"]).rpartition(".")[2]


@contextmanager
def _opened(path: StrPath) -> Iterator[Archive]:
    """The archive of a model; whatever it does not fulfil is a `ModelFileError` with its name."""
    archive = None
    try:
        with Archive(path, FORMAT) as archive:
            yield archive
    except (StorageError, ModelFileError) as error:
        raise _unreadable(path, str(error)) from error
    except MemoryError:  # says nothing about the file
        raise
    except Exception as error:
        if archive is None:  # there is no such file, or it may not be read
            raise
        raise _unreadable(path, f"what it holds makes no sense ({error})") from error


def _unreadable(path: StrPath, what: str) -> ModelFileError:
    return ModelFileError(f"{path} cannot be read as a polymargin model: {what}.")
