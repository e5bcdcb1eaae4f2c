"""``polymargin convert``: data files to a directory that opens instantly, or to other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from polymargin.cli._command import Command, make_output, option, output_options
from polymargin.cli._data import DataOptions, data_options, number_features, read_examples
from polymargin.cli._errors import CommandError, Exit, check_output, reading
from polymargin.io import (
    Dataset,
    convert_svmlight,
    detect_format,
    open_directory,
    write_directory,
    write_svmlight,
)
from polymargin.storage import replacing

FILES = (".npz", ".svm", ".svmlight", ".libsvm")

EXAMPLE = """
polymargin convert train.svm.gz train.data
polymargin convert letter.csv letter.npz --label letter
"""


@click.command(cls=Command, example=EXAMPLE)
@click.argument("data")
@click.argument("target")
@data_options
@option("Data", "--split", metavar="[FIELD=]VALUE,...", help="Convert rows with this value only.")
@option("Data", "--float32", is_flag=True, help="Keep features in single precision.")
@option("Output", "--force", is_flag=True, help="Replace TARGET if it exists.")
@output_options
def convert(data: str, target: str, float32: bool, force: bool, **options: Any) -> int:
    """Convert DATA to TARGET: .npz, .svm (svmlight) or, by any other name, a directory.

    A directory is opened in no time whatever its size: its arrays are mapped into memory. svmlight
    files are converted in bounded memory.
    """
    output = make_output(options["quiet"], options["as_json"])
    suffix = Path(target).suffix
    if Path(target).exists() and not force:
        raise CommandError(f"{target} exists; --force replaces it", Exit.OUTPUT)
    if suffix in FILES or not Path(target).is_dir():
        check_output(target, (data,))
    dtype = np.float32 if float32 else np.float64
    how = DataOptions(
        options["format"], options["label"], options["text"], options["index_base"], dtype
    )
    if suffix in FILES:
        written = _read(data, how, options["split"], output)
        _write_file(written, target, suffix)
    elif data != "-" and _format(data, how) == "svmlight":
        base: Any = {"auto": "auto", "0": True, "1": False}[how.index_base]
        with reading(data):
            convert_svmlight(data, target, zero_based=base, dtype=dtype, overwrite=force)
        written = open_directory(target)
    else:
        written = _read(data, how, options["split"], output)
        write_directory(written, target, overwrite=force)
    output.result(_summary(written, data, target), [])
    output.success(f"wrote {target}: {_described(written)}")
    return Exit.OK


def _read(data: str, how: DataOptions, split: str | None, output: Any) -> Dataset:
    found, kind = read_examples(data, how, split=split, output=output)
    return number_features([found], how.index_base)[0][0] if kind == "svmlight" else found


def _format(data: str, how: DataOptions) -> str:
    with reading(data):
        return how.format or detect_format(data)


def _write_file(data: Dataset, target: str, suffix: str) -> None:
    if data.X is None:
        raise CommandError(
            f"{data.source} holds text, which {suffix} files do not; convert it to a directory",
            Exit.USAGE,
        )
    if suffix != ".npz":
        try:
            write_svmlight(data, target)
        except ValueError as error:
            raise CommandError(f"{data.source}: {error}") from error
        return
    arrays: dict[str, Any] = {} if data.y is None else {"y": data.y}
    if sparse.issparse(data.X):
        X = data.X
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        arrays |= {"shape": np.array(X.shape), "format": np.array(b"csr")}
    else:
        arrays["X"] = data.X
    with replacing(target) as file:
        np.savez_compressed(file, **arrays)


def _described(data: Dataset) -> str:
    what = "texts" if data.X is None else f"examples of {data.X.shape[1]:,} features"
    classes = "no labels" if data.y is None else f"{len(np.unique(data.y)):,} classes"
    return f"{data.n_examples:,} {what}, {classes}"


def _summary(data: Dataset, source: str, target: str) -> dict[str, Any]:
    return {
        "source": source,
        "target": target,
        "n_examples": data.n_examples,
        "n_features": None if data.X is None else data.X.shape[1],
        "n_classes": None if data.y is None else len(np.unique(data.y)),
    }
