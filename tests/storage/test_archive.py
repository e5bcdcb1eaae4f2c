"""Archives give back what they were given, or say that they cannot."""

from __future__ import annotations

import hashlib
import json
import zipfile

import numpy as np
import pytest

from polymargin.storage import (
    Archive,
    DamagedFileError,
    ForeignFileError,
    Format,
    NewerFileError,
    StorageError,
    write_archive,
)

FORMAT = Format("a test", 3)
UNSEALED = Format("a test", 3, must_be_sealed=False)
ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=">i4").reshape(3, 2)),
    np.array(2.5, dtype=np.float32),
    np.zeros((0, 4), dtype=np.int8),
    np.array([True, False]),
    np.arange(20)[::3],
]


@pytest.fixture
def path(tmp_path):
    """A small archive."""
    write_archive(tmp_path / "a", FORMAT, {"note": {"é": [1, None, 0.5]}}, ARRAYS)
    return tmp_path / "a"


@pytest.fixture
def smaller(tmp_path):
    """One with every kind of byte in it, and few of them."""
    write_archive(tmp_path / "a", FORMAT, {}, [np.arange(2.0)])
    return tmp_path / "a"


def read(path, format=FORMAT):
    with Archive(path, format) as archive:
        return archive.manifest, [archive.array(name) for name in archive.manifest["arrays"]]


def unsealed(content: bytes) -> bytes:
    """The same archive as one that never had a seal (zip's comment)."""
    end = content.index(b"PK\5\6") + 20
    return content[:end] + b"\0\0"


def test_what_was_written_is_read(path):
    manifest, arrays = read(path)
    assert manifest["note"] == {"é": [1, None, 0.5]}
    assert (manifest["format"], manifest["version"]) == ("a test", 3)
    for array, found in zip(ARRAYS, arrays, strict=True):
        assert found.dtype == array.dtype and found.shape == array.shape
        assert np.array_equal(found, array)
        assert found.flags.writeable and found.flags.aligned and found.flags.c_contiguous


def test_equal_contents_give_equal_files(path):
    content = path.read_bytes()
    write_archive(path, FORMAT, {"note": {"é": [1, None, 0.5]}}, ARRAYS)
    assert path.read_bytes() == content


def test_no_arrays_at_all(tmp_path):
    write_archive(tmp_path / "a", FORMAT, {}, [])
    assert read(tmp_path / "a")[1] == []


def test_other_programs_read_it(path):
    assert zipfile.ZipFile(path).testzip() is None
    with np.load(path, allow_pickle=False) as plain:
        assert np.array_equal(plain["arrays/0.npy"], ARRAYS[0])
    manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
    entry = manifest["arrays"]["arrays/0.npy"]
    content = zipfile.ZipFile(path).read("arrays/0.npy")
    assert entry["sha256"] == hashlib.sha256(content).hexdigest() and entry["size"] == len(content)


def test_every_changed_byte_is_noticed(smaller):
    """Whether in an array, the manifest, or a field of zip's that nobody reads."""
    content = smaller.read_bytes()
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        smaller.write_bytes(changed)
        with pytest.raises(DamagedFileError):
            read(smaller)


def test_every_cut_and_every_addition_is_noticed(smaller):
    content = smaller.read_bytes()
    for length in range(len(content)):
        smaller.write_bytes(content[:length])
        enough = length >= 42  # to see that it was one
        with pytest.raises(DamagedFileError if enough else ForeignFileError):
            read(smaller)
    for more in (b"x", b"\0" * 100, content):
        for changed in (content + more, more + content):
            smaller.write_bytes(changed)
            with pytest.raises(DamagedFileError):
                read(smaller)


def test_a_seal_may_be_absent_only_where_the_format_says_so(path):
    content = path.read_bytes()
    path.write_bytes(unsealed(content))
    assert np.array_equal(read(path, UNSEALED)[1][0], ARRAYS[0])
    with pytest.raises(DamagedFileError, match="seal is missing"):
        read(path)
    at = content.index(b'"note"')  # inside of the manifest, of the same length
    path.write_bytes(content[:at] + b'"nota"' + content[at + 6 :])
    with pytest.raises(DamagedFileError, match="seal is broken"):
        read(path, UNSEALED)


def test_without_a_seal_an_array_is_still_checked(path):
    content = bytearray(unsealed(path.read_bytes()))
    content[content.index(ARRAYS[0].tobytes()) + 8] ^= 1
    path.write_bytes(content)
    with Archive(path, UNSEALED) as archive:
        assert np.array_equal(archive.array("arrays/1.npy"), ARRAYS[1])
        with pytest.raises(DamagedFileError, match=r"checksum of the array 'arrays/0\.npy'"):
            archive.array("arrays/0.npy")


def test_other_formats_and_versions(path):
    with pytest.raises(ForeignFileError, match="not that of a something else"):
        read(path, Format("something else", 3))
    with pytest.raises(NewerFileError, match=r"version 3 .* update polymargin") as error:
        read(path, Format("a test", 2))
    assert (error.value.found, error.value.known) == (3, 2)
    assert read(path, Format("a test", 4))[0]["version"] == 3
    assert issubclass(StorageError, ValueError)


@pytest.mark.parametrize("content", [b"", b"my thesis", b"PK\3\4" + bytes(500)])
def test_foreign_files(path, content):
    path.write_bytes(content)
    with pytest.raises(ForeignFileError):
        read(path)
    np.savez(path.with_suffix(".npz"), X=np.eye(2))
    with pytest.raises(ForeignFileError, match=r"no manifest\.json"):
        read(path.with_suffix(".npz"))


def test_what_cannot_be_written_leaves_the_old_file(path):
    content = path.read_bytes()
    with pytest.raises(ValueError, match="JSON compliant"):
        write_archive(path, FORMAT, {"note": float("nan")}, ARRAYS)
    with pytest.raises(TypeError):
        write_archive(path, FORMAT, {"note": object()}, ARRAYS)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]
