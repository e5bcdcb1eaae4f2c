"""``polymargin convert``: data files to a directory that opens instantly, or to other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from polymargin.cli._command import command, option, takes
from polymargin.cli._data import DataOptions, describe_data, number_features, read_examples
from polymargin.cli._errors import CommandError, Exit, about, check_output, reading, writing
from polymargin.cli._output import Output
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
BASES: dict[str, bool | Literal["auto"]] = {"auto": "auto", "0": True, "1": False}

EXAMPLE = """
polymargin convert train.svm.gz train.data
polymargin convert letter.csv letter.npz --label letter
"""


@command(EXAMPLE)
@click.argument("data")
@click.argument("target")
@takes(DataOptions, "how")
@option("Data", "--float32", is_flag=True, help="Keep features in single precision.")
@option("Output", "--force", is_flag=True, help="Replace TARGET if it exists.")
@takes(Output, "output")
def convert(
    data: str,
    target: str,
    how: DataOptions,
    float32: bool,
    force: bool,
    output: Output,
) -> None:
    """Convert DATA to TARGET: .npz, .svm (svmlight) or, by any other name, a directory.

    A directory is opened in no time whatever its size: its arrays are mapped into memory. svmlight
    files are converted in bounded memory.
    """
    suffix = Path(target).suffix
    if Path(target).exists() and not force:
        raise CommandError(f"{target} exists; --force replaces it", Exit.OUTPUT)
    if suffix in FILES or not Path(target).is_dir():
        check_output(target, (data,))
    dtype = np.float32 if float32 else np.float64
    with reading(data):
        kind = how.format or (None if data == "-" else detect_format(data))
    columns = how.label or how.text or how.split  # read_examples refuses them in svmlight files
    if kind == "svmlight" and data != "-" and suffix not in FILES and not columns:
        with reading(data):
            zero_based = BASES[how.index_base]
            convert_svmlight(data, target, zero_based=zero_based, dtype=dtype, overwrite=force)
        written = open_directory(target)
    else:
        written, kind = read_examples(data, how, dtype=dtype, output=output)
        if kind == "svmlight":
            written = number_features([written], how.index_base)[0][0]
        with writing(target):
            if suffix in FILES:
                _write_file(written, target, suffix)
            else:
                write_directory(written, target, overwrite=force)
    summary = {
        "source": data,
        "target": target,
        "n_examples": written.n_examples,
        "n_features": None if written.X is None else written.X.shape[1],
        "n_classes": None if written.y is None else len(np.unique(written.y)),
    }
    output.result(summary, [])
    output.success(f"wrote {target}: {describe_data(written)}")


def _write_file(data: Dataset, target: str, suffix: str) -> None:
    X = data.X
    if X is None:
        raise CommandError(
            f"{data.source} holds text, which {suffix} files do not; convert it to a directory",
            Exit.USAGE,
        )
    if suffix != ".npz":
        with about(data.source):
            write_svmlight(data, target)
        return
    arrays: dict[str, Any] = {} if data.y is None else {"y": data.y}
    if isinstance(X, np.ndarray):
        arrays["X"] = X
    else:
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        arrays |= {"shape": np.array(X.shape), "format": np.array(b"csr")}
    with replacing(target) as file:
        np.savez_compressed(file, **arrays)
