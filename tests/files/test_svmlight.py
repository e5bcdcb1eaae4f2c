"""svmlight text: the same arrays as scikit-learn's loader, and located errors for the rest."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from polymargin.files import svmlight
from polymargin.io import (
    DataFileError,
    Dataset,
    iter_svmlight,
    read_data,
    write_svmlight,
)
from tests.files.strategies import NAN_FREE, decimals, files


def in_a_folder(max_examples: int = 100) -> settings:
    """The folder is shared by the examples; they write the same file."""
    return settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        deadline=None,
        max_examples=max_examples,
    )


def read(content: bytes, tmp_path: Path, **options):
    path = tmp_path / "data.svm"
    path.write_bytes(content)
    return read_data(path, **options)


def same(X, Y) -> bool:
    return X.shape == Y.shape and all(
        np.array_equal(getattr(X, part), getattr(Y, part)) for part in ("indptr", "indices", "data")
    )


# --- valid files ---------------------------------------------------------------------------------


@in_a_folder()
@given(st.booleans().flatmap(lambda zero_based: files(zero_based, in_order=True)))
@example(b"1 2:0.5\n-1 1:1e-400 41:-0\r\n")
@example(b"\xef\xbb\xbf1 1:2")
def test_the_same_as_scikit_learn(tmp_path, content):
    data = read(content, tmp_path)
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"")
    X, y = load_svmlight_file(io.BytesIO(content))
    assert same(data.X, X)
    assert np.array_equal(data.y, y)
    assert data.X.has_canonical_format
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32


@in_a_folder(30)
@given(st.permutations([3, 1, 7, 2, 9, 5]))
def test_entries_in_any_order(tmp_path, order):
    X = read(b"1 " + b" ".join(b"%d:%d.5" % (i, i) for i in order), tmp_path).X
    assert X.indices.tolist() == [0, 1, 2, 4, 6, 8]
    assert X.data.tolist() == [1.5, 2.5, 3.5, 5.5, 7.5, 9.5]


@in_a_folder(150)
@given(st.lists(decimals(), min_size=1, max_size=20))
@example(["9007199254740993", "9007199254740992.5", "1e22", "1e23", "8.5e22", "123456789e15"])
@example(["5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623157e308"])
@example(["0." + "0" * 400 + "1", "1" + "0" * 300 + ".5", "0e999999999999", "00000000000000000001"])
def test_numbers_are_rounded_correctly(tmp_path, numbers):
    content = "1 " + " ".join(f"{i}:{number}" for i, number in enumerate(numbers))
    X = read(content.encode(), tmp_path).X
    expected = np.array([float(number) for number in numbers])
    assert X.data.tobytes() == expected.tobytes()  # the sign of zero too


def test_float32_is_the_rounded_float64(tmp_path):
    content = b"1 1:0.1 2:16777217 3:1e-50"
    X = read(content, tmp_path, dtype=np.float32).X
    assert X.dtype == np.float32
    assert np.array_equal(X.data, np.float32([0.1, 16777217, 1e-50]))
    with pytest.raises(DataFileError, match=r"1:3: the value of '1:1e39' overflows"):
        read(b"1 1:1e39", tmp_path, dtype=np.float32)


def test_numbering_of_features(tmp_path):
    assert read(b"1 1:5\n2 3:5", tmp_path).X.toarray().tolist() == [[5, 0, 0], [0, 0, 5]]
    assert read(b"1 0:5\n2 2:5", tmp_path).X.toarray().tolist() == [[5, 0, 0], [0, 0, 5]]
    assert read(b"1 1:5", tmp_path, zero_based=True).X.toarray().tolist() == [[0, 5]]
    assert read(b"1 1:5", tmp_path, n_features=3).X.toarray().tolist() == [[5, 0, 0]]
    assert read(b"1\n2\n", tmp_path).X.shape == (2, 0)


@pytest.mark.parametrize(
    ("content", "options", "place"),
    [
        (b"1 1:1\n1 0:1", {"zero_based": False}, (2, 3)),
        (b"1 1:1\n1 4:1", {"n_features": 3}, (2, 3)),
        (b"1 0:1\n1 3:1", {"n_features": 3}, (None, None)),
        (b"1 0:1\n1 3:1", {"n_features": 3, "zero_based": True}, (2, 3)),
    ],
)
def test_features_that_do_not_fit(tmp_path, content, options, place):
    with pytest.raises(DataFileError) as error:
        read(content, tmp_path, **options)
    assert (error.value.line, error.value.column) == place


def test_indices_beyond_32_bits(tmp_path):
    X = read(b"1 1:1 2:1\n2 1:1 4294967296:2 3000000000:3\n3 7:1", tmp_path).X
    assert X.shape == (3, 2**32) and X.indices.dtype == np.int64
    assert X.indices.tolist() == [0, 1, 0, 2999999999, 4294967295, 6]
    assert X.data.tolist() == [1, 1, 1, 3, 2, 1]


def test_labels(tmp_path):
    assert read(b"3 1:1\n-2 1:1\n1e2 1:1", tmp_path).y.dtype == np.int64
    assert read(b"3 1:1\n0.5 1:1", tmp_path).y.tolist() == [3, 0.5]
    names = read(b"1 1:1\n0 1:1", tmp_path, labels=["ham", "spam"])
    assert names.y.tolist() == ["spam", "ham"]
    with pytest.raises(DataFileError, match="the labels go from 0 to 2"):
        read(b"2 1:1\n0 1:1", tmp_path, labels=["ham", "spam"])


@in_a_folder(50)
@given(st.booleans(), st.lists(st.lists(NAN_FREE, min_size=3, max_size=3), min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path, zero_based, rows):
    X = np.array(rows)
    for matrix in (X, sparse.csr_array(X), sparse.csr_array(X, dtype=np.float64).tocsc()):
        data = Dataset(X=matrix, y=np.arange(len(X)) - 1)
        write_svmlight(data, tmp_path / "w.svm", zero_based=zero_based)
        back = read_data(tmp_path / "w.svm", zero_based=zero_based, n_features=3)
        assert np.array_equal(back.X.toarray(), X) and np.array_equal(back.y, data.y)


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="number the classes"):
        write_svmlight(Dataset(X=np.eye(2), y=np.array(["a", "b"])), tmp_path / "w.svm")
    with pytest.raises(ValueError, match="vectorise"):
        write_svmlight(Dataset(text=["a"]), tmp_path / "w.svm")
    assert list(tmp_path.iterdir()) == []


# --- errors, with their place --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "column", "reason"),
    [
        (b"1 1:1\n1 1:nan", 2, 3, "not finite"),
        (b"1 1:-Infinity", 1, 3, "not finite"),
        (b"nan 1:1", 1, 1, "label 'nan' is not finite"),
        (b"1e999 1:1", 1, 1, "label '1e999' is not finite"),
        (b"1 1:1e999", 1, 3, "overflows"),
        (b"1:1 2:2", 1, 1, "label is missing"),
        (b"# c\n\n  :1 2:2", 3, 3, "label"),
        (b"1,2 1:1", 1, 1, "several labels"),
        (b"spam 1:1", 1, 1, "not a number; labels that are words need CSV or JSONL"),
        (b"1 1:1 1:2", 1, 7, "index 1 occurs twice"),
        (b"1 3:1 1:2 2:5  3:4 # x", 1, 16, "index 3 occurs twice"),
        (b"1 1:1 7", 1, 7, "expected index:value, found '7'"),
        (b"1 1:1 7:", 1, 7, "expected a number after the colon"),
        (b"1 1:1 7:0.", 0, 0, ""),
        (b"1 1:1 7:1e", 1, 7, "expected a number"),
        (b"1 1:1 7:0x1p3", 1, 7, "expected a number"),
        (b"1 1:1_0", 1, 3, "expected a number"),
        (b"1 1:1,0", 1, 3, "expected a number"),
        (b"1 1 :1", 1, 3, "expected index:value"),
        (b"1 -1:1", 1, 3, "expected index:value, found '-1:1'"),
        (b"1 1:1 qid:3", 1, 7, "expected index:value"),
        (b"1 qid:x 1:1", 1, 3, "expected qid:number"),
        (b"1 1:1\x002:1", 1, 3, r"'1:1\x002:1'"),
        (b"\x00\x00", 1, 1, r"'\x00\x00'"),
        (b"1 9223372036854775808:1", 1, 3, "too large"),
        (b"1 99999999999999999999999999:1", 1, 3, "too large"),
        (b"1 0000000000000000000000000007:1", 0, 0, ""),
        (b"1 1:1\r1 1:1", 1, 7, "expected index:value"),
        (b"\xff\xfe1\x00", 1, 1, "not a number"),
    ],
)
def test_errors_are_located(tmp_path, content, line, column, reason):
    if not line:
        read(content, tmp_path)
        return
    with pytest.raises(DataFileError) as error:
        read(content, tmp_path)
    assert reason in error.value.reason
    assert (error.value.line, error.value.column) == (line, column)
    assert str(error.value).startswith(f"{tmp_path / 'data.svm'}:{line}:{column}: ")


def test_an_empty_file_says_so(tmp_path):
    for content in (b"", b"\n\n# nothing\n"):
        with pytest.raises(DataFileError, match="no examples"):
            read(content, tmp_path)
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "absent.svm")


# --- fuzzing: an array or a located error, nothing else ------------------------------------------


def parse_or_locate(content: bytes, tmp_path: Path) -> None:
    try:
        data = read(content, tmp_path, format="svmlight")
    except DataFileError as error:
        failure = error
    else:
        assert np.isfinite(data.X.data).all() and np.isfinite(data.y).all()
        data.X.check_format(full_check=True)
        return
    if failure.line is None:
        assert "no examples" in failure.reason or "compressed" in failure.reason
        return
    lines = content.split(b"\n")
    assert 1 <= failure.line <= len(lines)
    assert 1 <= failure.column <= len(lines[failure.line - 1]) + 1


@in_a_folder(120)
@given(st.one_of(st.binary(max_size=60), st.text("0123456789:. -+e#qid\n\r\t,", max_size=60)))
def test_any_bytes(tmp_path, content):
    parse_or_locate(content if isinstance(content, bytes) else content.encode(), tmp_path)


@in_a_folder(120)
@given(st.data(), files())
def test_mutations_of_valid_files(tmp_path, data, content):
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        what = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "double"]))
        if what == "cut":
            del content[at:]
        elif what == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=3))
        elif what == "delete":
            del content[at : at + data.draw(st.integers(1, 5))]
        elif what == "double":
            content[at:at] = content[at : at + 10]
        elif at < len(content):
            content[at] ^= 1 << data.draw(st.integers(0, 7))
    parse_or_locate(bytes(content), tmp_path)


@in_a_folder(8)
@given(files())
def test_a_file_cut_anywhere(tmp_path, content):
    for end in range(len(content)):
        parse_or_locate(content[:end], tmp_path)


# --- streams -------------------------------------------------------------------------------------


@in_a_folder(40)
@given(st.booleans().flatmap(files), st.integers(1, 5), st.sampled_from([1, 7, 64]))
def test_chunks_and_blocks_of_any_size_give_the_whole(tmp_path, content, rows, block):
    path = tmp_path / "data.svm"
    path.write_bytes(content)
    whole = read_data(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight, "BLOCK_BYTES", block)
        assert same(read_data(path).X, whole.X)
        chunks = list(iter_svmlight(path, rows=rows))
    assert [X.shape[0] for X, _ in chunks[:-1]] == [rows] * (len(chunks) - 1)
    assert all(X.shape[1] == whole.X.shape[1] for X, _ in chunks)
    assert np.array_equal(np.vstack([X.toarray() for X, _ in chunks]), whole.X.toarray())
    assert np.array_equal(np.concatenate([y for _, y in chunks]), whole.y)


def test_errors_in_later_chunks_have_the_line_of_the_file(tmp_path):
    path = tmp_path / "data.svm"
    path.write_bytes(b"1 1:1\n" * 1000 + b"1 x\n")
    chunks = iter_svmlight(path, rows=10, n_features=1, zero_based=False)
    with pytest.raises(DataFileError) as error:
        for _ in chunks:
            pass
    assert (error.value.line, error.value.column) == (1001, 3)


@pytest.mark.parametrize("name", ["a.svm.gz", "a.svm.bz2", "a.svm.xz", "a.gz", "misnamed.svm"])
def test_compressed(tmp_path, name):
    opener = {".bz2": bz2, ".xz": lzma}.get(Path(name).suffix, gzip)
    content = opener.compress(b"1 1:0.5\n2 2:1\n" * 100)
    (tmp_path / name).write_bytes(content)
    assert read_data(tmp_path / name).X.shape == (200, 2)
    (tmp_path / name).write_bytes(content[:-9])
    with pytest.raises(DataFileError, match="damaged or cut short"):
        read_data(tmp_path / name, format="svmlight")


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_standard_input(monkeypatch, compress):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(compress(b"1 1:0.5\n2 2:1\n"))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_data("-").X.toarray().tolist() == [[0.5, 0], [0, 1]]
    with pytest.raises(ValueError, match="read only once"):
        iter_svmlight("-")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers keep freed memory"
)
def test_memory_of_a_stream_is_bounded(tmp_path):
    path = tmp_path / "data.svm"
    line = b"1 " + b" ".join(b"%d:0.25" % i for i in range(1, 400)) + b"\n"
    path.write_bytes(line * 12_000)  # 40 MB
    grown = [resident() for _ in iter_svmlight(path, rows=500, n_features=400, zero_based=False)]
    assert len(grown) == 24
    assert max(grown[2:]) - grown[0] < 12e6


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
