"""``polymargin convert``: data files to a directory that opens instantly, or to other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from polymargin.cli._command import command, option, takes
from polymargin.cli._data import (
    Columns,
    DataOptions,
    describe_data,
    number_features,
    read_examples,
)
from polymargin.cli._errors import CommandError, Exit, about, check_output, reading, writing
from polymargin.cli._output import Output
from polymargin.files import need_pyarrow
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
TABLE_FILES = (".parquet", ".pq", ".csv")
NOT_WRITTEN = (".tsv", ".jsonl", ".ndjson", ".gz", ".bz2", ".xz", ".zst", ".txt", ".dat")
MOST_COLUMNS = 10_000  # of a table; more features are for the other formats
BASES: dict[str, bool | Literal["auto"]] = {"auto": "auto", "0": True, "1": False}

EXAMPLE = """
polymargin convert train.svm.gz train.data
polymargin convert letter.csv letter.npz --label letter
polymargin convert train.svm train.parquet
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
    """Convert DATA to TARGET: .npz, .svm, .parquet, .csv, or else a directory.

    A directory is opened in no time whatever its size: its arrays are mapped into memory. svmlight
    files are converted in bounded memory.
    """
    suffix = Path(target).suffix
    if Path(target).exists() and not force:
        raise CommandError(f"{target} exists; --force replaces it", Exit.OUTPUT)
    if suffix in NOT_WRITTEN:
        known = ", ".join((*FILES[:2], *TABLE_FILES[:1], *TABLE_FILES[2:]))
        raise CommandError(
            f"{target}: {suffix} files are not written; give a name that ends in {known}, or one "
            "without an ending for a directory",
            Exit.USAGE,
        )
    if suffix in (*FILES, *TABLE_FILES) or not Path(target).is_dir():
        check_output(target, (data,))
    dtype = np.float32 if float32 else np.float64
    with reading(data):
        kind = how.format or (None if data == "-" else detect_format(data))
    columns = how.label or how.text or how.split  # read_examples refuses them in svmlight files
    a_file = suffix in (*FILES, *TABLE_FILES)
    if kind == "svmlight" and data != "-" and not a_file and not columns:
        with reading(data):
            zero_based = BASES[how.index_base]
            convert_svmlight(data, target, zero_based=zero_based, dtype=dtype, overwrite=force)
        written = open_directory(target)
    else:
        if len(how.text) > 1:
            raise CommandError("--text: one column of text is converted", Exit.USAGE)
        what = Columns(table=suffix in TABLE_FILES, text=how.text[0] if how.text else None)
        if what.table:
            what = Columns(table=True)
        written, kind = read_examples(data, how, what, dtype=dtype, output=output)
        if kind == "svmlight":
            written = number_features([written], how.index_base)[0][0]
        with writing(target):
            if suffix in TABLE_FILES:
                _write_table(written, target, suffix)
            elif suffix in FILES:
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


def _write_table(data: Dataset, target: str, suffix: str) -> None:
    """Write columns: those of a table, texts, or a column for each feature; then the labels."""
    need_pyarrow()
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    X, table = data.X, data.table
    if X is not None:
        if X.shape[1] > MOST_COLUMNS:
            raise CommandError(
                f"{data.source} has {X.shape[1]:,} features, too many for columns of a table: "
                "convert it to .npz or to a directory",
                Exit.USAGE,
            )
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        names = data.feature_names or [f"x{j + 1}" for j in range(X.shape[1])]
        table = pyarrow.table({name: dense[:, j] for j, name in enumerate(names)})
    elif table is None:
        table = pyarrow.table({"text": list(data.text or ())})
    if data.y is not None:
        label = data.label_name or "label"
        table = table.append_column(label, pyarrow.array(data.y.tolist()))
    write = pyarrow.csv.write_csv if suffix == ".csv" else pyarrow.parquet.write_table
    with replacing(target) as file:
        write(table, file)


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
