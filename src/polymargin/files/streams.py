"""Opening files: compression by content, standard input, and what kind of data a file holds."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from polymargin.files.dataset import DataFileError
from polymargin.storage import StrPath

STDIN = "-"
FORMATS = ("svmlight", "npz", "csv", "tsv", "parquet", "jsonl", "text", "directory")
_SUFFIXES = {
    **dict.fromkeys((".svm", ".svmlight", ".libsvm", ".txt", ".dat"), "svmlight"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "tsv",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_COMPRESSIONS: tuple[tuple[bytes, Callable[..., Any], Callable[..., Any]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw), lambda: zlib.decompressobj(31)),
    (b"BZh", bz2.BZ2File, bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lzma.LZMAFile, lzma.LZMADecompressor),
    (b"\x28\xb5\x2f\xfd", lambda raw: _zstd(raw), lambda: _Zstd()),
)


def _zstd(raw: Any) -> io.BufferedReader:
    """A stream of zstd, which pyarrow decompresses."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "files compressed with zstd are read by pyarrow: pip install 'polymargin[tables]'."
        ) from error
    return io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd"))


class _Zstd:
    """As much of the beginning as can be decompressed."""

    def decompress(self, start: bytes, most: int) -> bytes:
        with _zstd(io.BytesIO(start)) as stream:
            return stream.read1(most)


_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_SVMLIGHT_LINE = re.compile(rb"\s*[-+.\w]+(\s+(qid|\d+):\S+)*\s*(#.*)?$")


def name_of(path: StrPath) -> str:
    """The path as messages say it."""
    return "standard input" if is_stdin(path) else os.fspath(path)


def is_stdin(path: StrPath) -> bool:
    """Whether the path stands for standard input."""
    return isinstance(path, str) and path == STDIN


@contextmanager
def errors_in(path: StrPath) -> Iterator[None]:
    """Let every `DataFileError` inside name this file."""
    try:
        yield
    except DataFileError as error:
        error.path = error.path or name_of(path)
        raise


@contextmanager
def open_bytes(path: StrPath) -> Iterator[io.BufferedIOBase]:
    """Open a file (or standard input for "-") for reading, decompressed if it is compressed.

    Damage of the compression is raised as `DataFileError`, also from reads inside the block.
    """
    with errors_in(path), _errors_of_compression(), _open_raw(path) as raw:
        for magic, opener, _ in _COMPRESSIONS:
            if raw.peek(6).startswith(magic):
                with opener(raw) as stream:
                    yield stream
                return
        yield raw


@contextmanager
def _errors_of_compression() -> Iterator[None]:
    try:
        yield
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's own errors name their file
            raise
        raise DataFileError(f"the compressed data are damaged or cut short ({error})") from error


@contextmanager
def _open_raw(path: StrPath) -> Iterator[io.BufferedReader]:
    if is_stdin(path):
        stdin = cast(io.RawIOBase, sys.stdin.buffer)
        yield stdin if isinstance(stdin, io.BufferedReader) else io.BufferedReader(stdin)
        return
    with open(path, "rb") as raw:
        yield raw


def detect_format(path: StrPath) -> str:
    """Tell the format of a file by its name, else by its first bytes.

    Examples
    --------
    >>> from polymargin.io import detect_format
    >>> detect_format("train.svm.gz")
    'svmlight'
    """
    if not is_stdin(path):
        if os.path.isdir(path):
            return "directory"
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        if suffixes and suffixes[-1] in _COMPRESSED:
            suffixes.pop()
        if suffixes and suffixes[-1] in _SUFFIXES:
            return _SUFFIXES[suffixes[-1]]
    start = _start(path)
    with errors_in(path):
        return _by_content(start)


def detect_text_format(path: StrPath, column: str) -> str:
    """The same for a file of texts: "text", one on each line, where it is nothing else.

    Comma-separated values are told from texts with commas by the name of a column.

    Examples
    --------
    >>> import os, tempfile
    >>> from polymargin.io import detect_text_format
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "messages.txt")
    ...     _ = open(path, "w").write("where is my card, please")
    ...     print(detect_text_format(path, "text"))
    text
    """
    if not is_stdin(path) and (os.path.isdir(path) or not _may_be_text(path)):
        return detect_format(path)
    start = _start(path)
    if (
        start.startswith((b"PK\x03\x04", b"PAR1"))
        or start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    ):
        return _by_content(start)
    first = start.partition(b"\n")[0].decode("utf-8-sig", errors="replace")
    cells = [cell.strip().strip('"').strip() for cell in re.split("[,;\t|]", first)]
    if column in cells:
        return "tsv" if "\t" in first else "csv"
    return "text"


def _may_be_text(path: StrPath) -> bool:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    suffixes = suffixes[:-1] if suffixes and suffixes[-1] in _COMPRESSED else suffixes
    return not suffixes or suffixes[-1] not in _SUFFIXES or suffixes[-1] in (".txt", ".dat")


def _start(path: StrPath) -> bytes:
    """The first bytes, decompressed; standard input can still be read from its beginning."""
    with _open_raw(path) as raw:
        start = _decompressed_start(raw.peek(65536)[:65536])
    if not start and not is_stdin(path):  # a compressed block longer than what was looked at
        with open_bytes(path) as stream:
            start = stream.read(4096)
    return start


def _decompressed_start(start: bytes) -> bytes:
    """The first bytes of a stream, without reading on (standard input has no way back)."""
    for magic, _, decompressor in _COMPRESSIONS:
        if start.startswith(magic):
            try:
                return bytes(decompressor().decompress(start, 4096))
            except (OSError, *_DAMAGED):
                return b""  # reading on will say what is wrong
    return start[:4096]


def _by_content(start: bytes) -> str:
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if start.startswith(b"PAR1"):
        return "parquet"
    lines = [line for line in start.splitlines()[:20] if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith(b"#")]
    if lines and lines[0].lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        return "jsonl"
    # the last line may be cut by the end of what was looked at
    if lines and all(_SVMLIGHT_LINE.match(line) for line in lines[:-1] or lines):
        return "svmlight"
    if lines and b"\t" in lines[0]:
        return "tsv"
    if any(_is_table(lines, separator) for separator in b",;"):
        return "csv"
    raise DataFileError(
        "cannot tell the format of this file, neither by its name nor by its first lines. What is "
        "understood: svmlight (LABEL INDEX:VALUE ...), csv and tsv with a line of names, jsonl (an "
        "object per line), parquet, npz, text (one per line, without labels) and directories made "
        f"by polymargin convert. If it is one of these, give format=, one of {', '.join(FORMATS)}"
    )


def _is_table(lines: list[bytes], separator: int) -> bool:
    """Whether lines are cells between separators, as many in each, and not prose with commas."""
    text = [line.decode("utf-8-sig", errors="replace") for line in lines]
    try:
        rows = list(csv.reader(text, delimiter=chr(separator), strict=False))
    except csv.Error:
        return False
    widths = {len(row) for row in (rows[:-1] if len(rows) > 2 else rows)}  # the last may be cut
    quoted = any(line.count('"') % 2 for line in text)  # a cell that goes on in the next line
    return bool(rows) and len(rows[0]) > 1 and (len(widths) == 1 or quoted)
