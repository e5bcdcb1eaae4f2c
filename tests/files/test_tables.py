"""CSV, TSV, JSON lines and Parquet: which column is what, and errors that say where."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polymargin.io import DataFileError, read_data

IRIS = "length,width,species\n5.1,3.5,setosa\n7,3.2,versicolor\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# --- CSV and TSV ---------------------------------------------------------------------------------


def test_csv_with_a_label_by_name(write):
    data = read_data(write("iris.csv", IRIS), label="species")
    assert data.X.tolist() == [[5.1, 3.5], [7, 3.2]] and data.X.dtype == np.float64
    assert data.y.tolist() == ["setosa", "versicolor"]
    assert data.feature_names == ["length", "width"] and data.label_name == "species"
    assert data.n_examples == 2


@pytest.mark.parametrize("name", ["label", "y", "target", "class", "Label", "CLASS"])
def test_usual_names_of_labels(write, name):
    data = read_data(write("a.csv", f"{name},a,b\n1,2,3\n4,5,6\n"))
    assert data.y.tolist() == [1, 4] and data.feature_names == ["a", "b"]


def test_the_last_column_is_the_label_and_a_warning_says_so(write):
    with pytest.warns(UserWarning, match="the last one, 'species', is taken as the label"):
        data = read_data(write("iris.csv", IRIS))
    assert data.label_name == "species"


def test_no_labels(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = read_data(write("a.csv", "a,b\n1,2\n"), label=False)
        assert data.y is None and data.X.tolist() == [[1, 2]]
        data = read_data(write("a.csv", "a,b\n1,2\n"), features=["b", "a"])
        assert data.y is None and data.X.tolist() == [[2, 1]]


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_index_of_a_frame_is_no_feature(write, name):
    path = write("a.csv", f"{name},a,y\n0,1.5,u\n1,2.5,v\n")
    with pytest.warns(UserWarning, match="writes the index of a frame, is left out"):
        data = read_data(path)
    assert data.feature_names == ["a"] and data.X.tolist() == [[1.5], [2.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_data(path, features=[name], label="y").X.tolist() == [[0], [1]]


def test_columns_of_all_kinds(write):
    content = 'a,b,y\n1,x,u\n,"x\n2",v\n3,,u\n'
    data = read_data(write("a.csv", content), table=True)
    assert data.X is None and data.table.to_pydict() == {"a": [1, None, 3], "b": ["x", "x\n2", ""]}
    assert data.y.tolist() == ["u", "v", "u"] and data.place_of(2).endswith("a.csv:5")
    some = data.take([2])
    assert some.table.to_pydict() == {"a": [3], "b": [""]} and some.place_of(0).endswith("a.csv:5")
    with pytest.raises(ValueError, match="leave text= out"):
        read_data(write("a.csv", content), table=True, text="b")


def test_codes_are_read_as_they_are_written(write):
    path = write("a.csv", "a,y\n007,u\n08,v\n")
    assert read_data(path, table=True).table.to_pydict() == {"a": [7, 8]}
    assert read_data(path, table=True, strings=["a"]).table.to_pydict() == {"a": ["007", "08"]}


def test_a_text_per_line(write):
    path = write("a.txt", "where is my card\n\nhello, you\n\n")
    data = read_data(path, format="text")
    assert data.text == ["where is my card", "", "hello, you"] and data.y is None


def test_zstd_is_decompressed(write):
    pyarrow = pytest.importorskip("pyarrow")
    packed = pyarrow.compress(IRIS.encode(), codec="zstd", asbytes=True)
    for name in ("iris.csv.zst", "iris"):
        data = read_data(write(name, packed), label="species", format="csv")
        assert data.X.tolist() == [[5.1, 3.5], [7, 3.2]]
    assert read_data(write("iris", packed), label="species").n_examples == 2
    with pytest.raises(DataFileError):
        read_data(write("iris.csv.zst", packed[:-10]), label="species")


def test_chosen_features_and_rows(write):
    content = "split,a,b,c,label\ntrain,1,2,x,u\ntest,3,4,y,v\nval,5,6,z,u\n"
    path = write("a.csv", content)
    data = read_data(path, features=["c"], text="c", where={"split": "test"})
    assert data.text == ["y"] and data.y.tolist() == ["v"] and data.X is None
    data = read_data(path, features=["b", "a"], where={"split": ["train", "val"]})
    assert data.X.tolist() == [[2, 1], [6, 5]] and data.y.tolist() == ["u", "u"]
    with pytest.raises(DataFileError, match="split has the values 'test', 'train', 'val'"):
        read_data(path, features=["a"], where={"split": "dev"})


@pytest.mark.parametrize(
    ("content", "X"),
    [
        ("1,2,0\n3,4,1\n", [[1, 2], [3, 4]]),  # no header
        ("a;b;y\n1;2;0\n3;4;1\n", [[1, 2], [3, 4]]),
        ("\ufeffa,b,y\r\n1,2,0\r\n\r\n3,4,1", [[1, 2], [3, 4]]),
        ('"a","b","y"\n"1"," 2 ",0\n3,4e0,1\n', [[1, 2], [3, 4]]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is taken as the label")
def test_dialects(write, content, X):
    data = read_data(write("a.csv", content))
    assert data.X.tolist() == X and data.y.tolist() == [0, 1]


def test_text_in_csv(write):
    path = write("a.tsv", 'text\tlabel\n"two\nlines"\ta b\nhello, you\tc\n')
    data = read_data(path)
    assert data.text == ["two\nlines", "hello, you"]
    assert data.y.tolist() == ["a b", "c"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-2"], np.array([1, -2])),
        (["1.0", "2.5"], np.array([1.0, 2.5])),
        (["1", "2.5"], np.array(["1", "2.5"])),
        (["007", "1"], np.array(["007", "1"])),
        (["12345678901234567890", "1"], np.array(["12345678901234567890", "1"])),
        (["yes", "no"], np.array(["yes", "no"])),
        (["nan", "inf"], np.array(["nan", "inf"])),
        (["not sure", "x y"], np.array(["not sure", "x y"])),
    ],
)
def test_labels_are_integers_only_if_all_are(write, labels, expected):
    rows = "".join(f"{label},1\n" for label in labels)
    y = read_data(write("a.csv", "label,a\n" + rows)).y
    assert y.dtype.kind == expected.dtype.kind and np.array_equal(y, expected)


def test_labels_are_without_the_spaces_around_them(write):
    with pytest.warns(UserWarning, match="without the spaces around them: ' y' is 'y'"):
        assert read_data(write("a.csv", "label,a\ny,1\n y,2\nz,3\n")).y.tolist() == ["y", "y", "z"]
    path = write("a.jsonl", jsonl({"label": "y", "a": 1}, {"label": " y", "a": 2}))
    with pytest.warns(UserWarning, match="' y' is 'y'"):
        assert read_data(path).y.tolist() == ["y", "y"]
    with pytest.warns(UserWarning, match="' 2' is '2'"):
        assert read_data(write("a.csv", "label,a\n1,1\n 2,2\n")).y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "line", "column", "reason"),
    [
        ("a,y\n1,2\nx,3\n", 3, 1, "the column 'a' holds 'x', which is not a number"),
        ("a,y\n1,2\n,3\n", 3, 1, "the column 'a' is empty"),
        ("a,y\n1,2\n1,\n", 3, 2, "the label is empty"),
        ("a,b,y\n1,2,3\n1,2\n", 3, None, "2 fields, where there are 3 columns"),
        ("a,a,y\n1,2,3\n", None, None, "several columns are named 'a'"),
        ("a,y\nnan,2\n", 2, 1, "the value of the column 'a' is not finite (nan)"),
        ("a,y\n1,2\n\n1e999,2\n", 4, 1, "not finite"),
        ("a,y\nNA,2\n", 2, 1, "the column 'a' holds 'NA', which is not a number"),
        ('a,y\n1,"two\nlines"\nx,u\n', 4, 1, "the column 'a' holds 'x'"),
        ('a,y\n"1,2\n', 2, None, "not well-formed"),
        ("", None, None, "the file is empty"),
        ("a,y\n", None, None, "no examples"),
        ('a,y\n1,"2\n3,4\n', 3, None, "not well-formed"),
        (b"a,y\n1,2\n\xff,3\n", 3, None, "not UTF-8"),
        ("a,y\n1,2\n".encode("utf-16"), 1, None, "UTF-16"),
    ],
)
def test_errors_in_csv_are_located(write, content, line, column, reason):
    with pytest.raises(DataFileError) as error:
        read_data(write("a.csv", content))
    assert reason in str(error.value)
    if line is not None:
        assert (error.value.line, error.value.column) == (line, column)


def test_missing_columns_are_named(write):
    path = write("a.csv", "a,b,y\n1,2,3\n")
    for options in ({"label": "z"}, {"text": "z"}, {"features": ["z"]}, {"where": {"z": 1}}):
        with pytest.raises(DataFileError, match="no column 'z'; the columns are 'a', 'b', 'y'"):
            read_data(path, **options)
    with pytest.raises(DataFileError, match="label=7, but there are 3 columns"):
        read_data(path, label=7)


# --- JSON lines ----------------------------------------------------------------------------------


def jsonl(*records) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_text_in_json_lines(write):
    records = [{"text": "hé\n", "label": "a", "split": 1}, {"text": "", "label": "b", "split": 2}]
    path = write("a.jsonl.gz", gzip.compress(jsonl(*records)))
    data = read_data(path)
    assert data.text == ["hé\n", ""] and data.y.tolist() == ["a", "b"]
    assert read_data(path, where={"split": 2}).text == [""]
    assert read_data(path, text="text", label=False).y is None


def test_numbers_in_json_lines(write):
    path = write("a.jsonl", jsonl({"a": 1, "b": 2.5, "y": 7}, {"b": 1, "a": 0, "y": 8}))
    data = read_data(path, dtype=np.float32)
    assert data.X.tolist() == [[1, 2.5], [0, 1]] and data.X.dtype == np.float32
    assert data.y.tolist() == [7, 8] and data.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (b'{"text": "a", "label": 1}\n{"text": "b"}\n', 2, "the field 'label' is missing"),
        (b'{"text": "a", "label": 1}\n{"text": 3, "label": 1}', 2, "expected text"),
        (b'{"text": "a", "label": 1}\n{"text": "b", "label": "x"}', 2, "not of the kind"),
        (b'{"text": "a", "label": null}', 1, "the label is None"),
        (b'{"text": "a", "label": [1]}', 1, "expected a string or a number"),
        (b'{"a": "x", "y": 1}', 1, "the column 'a' holds 'x'"),
        (b'{"a": 1e999, "y": 1}', 1, "not finite"),
        (b'{"a": 1, "y": 1}\n{"a": 1, "y"', 2, "not JSON"),
        (b'{"a": 1, "y": 1}\n[1]\n', 2, "expected an object"),
        (b'{"a": "\xff"}', 1, "not UTF-8"),
        (b"[" * 100_000, 1, "not JSON"),
        (b"", None, "no examples"),
    ],
)
def test_errors_in_json_lines_are_located(write, lines, line, reason):
    with pytest.raises(DataFileError) as error:
        read_data(write("a.jsonl", lines))
    assert reason in str(error.value) and error.value.line == line


# --- Parquet -------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return write


def test_parquet(parquet):
    path = parquet({"a": [1, 2], "b": [0.5, 1.5], "class": ["x", "y"], "part": ["u", "v"]})
    data = read_data(path, where={"part": "v"})
    assert data.X.tolist() == [[2, 1.5]] and data.y.tolist() == ["y"]
    assert data.feature_names == ["a", "b"]
    assert read_data(path, text="class", label="a").text == ["x", "y"]
    with pytest.raises(DataFileError, match="the column 'part' holds 'u'"):
        read_data(path)


def test_errors_in_parquet(parquet, write):
    with pytest.raises(DataFileError, match=r"a\.parquet:2: the column 'a' is empty there"):
        read_data(parquet({"a": [1, None], "y": [1, 2]}))
    with pytest.raises(DataFileError, match=r"a\.parquet:2: the label is None"):
        read_data(parquet({"a": [1, 2], "y": ["u", None]}))
    with pytest.raises(DataFileError, match="not a sound Parquet file"):
        read_data(write("b.parquet", b"PAR1 nothing"))


# --- any bytes -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*is taken as the label")
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.npz", "a"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(content=st.one_of(st.binary(max_size=80), st.text('a,1\n"{}:yl\t ', max_size=40)))
def test_any_bytes_are_read_or_refused(write, name, content):
    try:
        data = read_data(write(name, content))
    except DataFileError:
        return
    assert data.n_examples > 0


def test_arguments_that_mean_nothing_are_refused(write):
    path = write("a.svm", "1 1:1\n")
    with pytest.raises(ValueError, match="label= chooses among columns"):
        read_data(path, label="y")
    with pytest.raises(ValueError, match=r"part= is for \.npz files"):
        read_data(path, part="train")
    with pytest.raises(ValueError, match="format must be one of"):
        read_data(path, format="arff")
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        read_data(path, dtype=int)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"1 1:2 3:4\n-1 2:1\n", "svmlight"),
        (b"# comment\n+1 qid:3 1:2\n", "svmlight"),
        (b'{"a": 1}\n', "jsonl"),
        (b"a,b\n1,2\n", "csv"),
        (b"a\tb\n1\t2\n", "tsv"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "csv"),
    ],
)
def test_formats_by_content(write, content, kind):
    from polymargin.io import detect_format

    assert detect_format(write("data", content)) == kind


def test_a_format_that_cannot_be_told(write):
    with pytest.raises(DataFileError, match="cannot tell the format"):
        read_data(write("data", b"hello world, how are you"[:11]))
