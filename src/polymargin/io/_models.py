"""Model files: save, load, and look at one without loading it. See docs/files_and_models.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn

from polymargin.io._archive import Archive, write_archive
from polymargin.io._errors import ModelFileError
from polymargin.io._known import check_can_be_saved, decode_object, encode_object
from polymargin.io._tree import Decoder, Encoder

_CERTIFICATE = ("objective_", "dual_objective_", "dual_gap_", "n_iter_")


def save(model: Any, path: Any) -> None:
    """Write a fitted model to a file.

    The file (by custom ``.pmz``) holds arrays and JSON, no pickle: opening it cannot run code. It
    is written beside its place and then renamed, so that whatever happens there is the old file or
    the new one, never a part.

    Parameters
    ----------
    model : LinearMulticlassSVC, LinearMulticlassSVCCV, KernelMulticlassSVC, \
            KernelMulticlassSVCCV, LaRankClassifier or Pipeline
        Fitted. A pipeline has one of these as its last step, and before it any of scikit-learn's
        TfidfVectorizer, CountVectorizer, HashingVectorizer, TfidfTransformer, StandardScaler,
        MaxAbsScaler, MinMaxScaler and Normalizer.
    path : path
        The file, which is replaced if it exists.

    Raises
    ------
    ModelFileError
        For a model with a part that such a file cannot hold, such as a function.
    """
    check_can_be_saved(model)
    encoder = Encoder(encode_object)
    tree = encoder.encode(model, "")
    manifest = {"written_with": _versions(), "model": tree}
    write_archive(path, manifest, encoder.arrays)


def load(path: Any) -> Any:
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
    """
    with Archive(path) as archive:
        return _decoded(archive, archive.array)


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
    """

    kind: str
    steps: list[str]
    params: dict[str, Any]
    certificate: dict[str, Any]
    classes: Any = field(repr=False)
    n_features: int
    feature_names: list[str] | None = field(repr=False)
    file_bytes: int
    format_version: int
    written_with: dict[str, str]


def inspect_model(path: Any) -> ModelCard:
    """Describe a model file without reading its weights.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    ModelCard
        The description.
    """
    with Archive(path) as archive, archive._sound():
        tree = archive.manifest["model"]
        steps = [tree]
        if tree["$object"] == "sklearn.Pipeline":
            steps = [step[1] for step in tree["params"]["steps"]]
        last = steps[-1]
        decoder = Decoder(archive.array, _described)
        params = {key: decoder.decode(value) for key, value in last["params"].items()}
        state = {key: last["state"].get(key) for key in (*_CERTIFICATE, "classes_")}
        state = {key: decoder.decode(value) for key, value in state.items()}
        names = last["state"].get("feature_names_in_")
        return ModelCard(
            kind=last["$object"].rpartition(".")[2],
            steps=[
                step["$object"].rpartition(".")[2] if isinstance(step, dict) else str(step)
                for step in steps
            ],
            params=params,
            certificate={key.rstrip("_"): state[key] for key in _CERTIFICATE},
            classes=state["classes_"],
            n_features=int(last["state"]["n_features_in_"]),
            feature_names=None if names is None else decoder.decode(names).tolist(),
            file_bytes=archive.size,
            format_version=int(archive.manifest["version"]),
            written_with=dict(archive.manifest.get("written_with", {})),
        )


def _described(encoded: dict[str, Any], decoder: Decoder) -> dict[str, Any]:
    """An object that is a parameter (a solver), as its class and parameters."""
    params = {key: decoder.decode(value) for key, value in encoded["params"].items()}
    return {"class": encoded["$object"].rpartition(".")[2], **params}


def _decoded(archive: Archive, read_array: Any) -> Any:
    try:
        model = Decoder(read_array, decode_object).decode(archive.manifest["model"])
        check_can_be_saved(model)
    except ModelFileError as error:
        raise error if archive.path in str(error) else archive.error(str(error)) from error
    except Exception as error:
        raise archive.error(f"what it holds makes no sense ({error})") from error
    return model


def _versions() -> dict[str, str]:
    from polymargin import __version__

    return {
        "polymargin": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }
