"""A file is replaced whole or not at all, and nothing is left beside it."""

from __future__ import annotations

import os
import stat

import pytest

from polymargin.storage import fresh_name, replacing


def test_the_name_is_taken_at_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def write_half(path, via, error):
    with replacing(path, via=via) as file:
        file.write(b"half")
        file.flush()
        raise error


@pytest.mark.parametrize("via", [None, "a.tmp"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_what_was_there(tmp_path, via, error):
    path = tmp_path / "a"
    for before in ([], [path]):
        with pytest.raises(error):
            write_half(path, via and tmp_path / via, error)
        assert list(tmp_path.iterdir()) == before
        path.write_bytes(b"old")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, function):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*arguments):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(OSError, match="disk full"), replacing(path) as file:
            file.write(b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_it_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, r=real: (calls.append(n), r(*a))[1])
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert calls[:2] == ["fsync", "replace"]


def test_a_known_name_is_written_over(tmp_path):
    (tmp_path / "a.tmp").write_bytes(b"left by a process that was killed")
    with replacing(tmp_path / "a", via=tmp_path / "a.tmp") as file:
        file.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_fresh_names(tmp_path):
    names = {fresh_name(tmp_path / "a") for _ in range(100)}
    assert len(names) == 100
    assert all(name.parent == tmp_path and name.name.startswith(".a.") for name in names)


def test_a_folder_that_is_absent(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "a"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_any_new_file(tmp_path):
    with replacing(tmp_path / "a"):
        pass
    (tmp_path / "b").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"}
    assert len(modes) == 1
