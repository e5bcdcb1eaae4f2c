"""The container of a model file: a zip archive of a JSON manifest and .npy arrays, nothing else.

Members are stored without compression, so that no member can be larger than the file. The manifest
lists every array with type, shape, size and SHA-256; an archive that differs from its manifest is
refused before its arrays are read. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polymargin.io._atomic import replacing
from polymargin.io._errors import ModelFileError

MANIFEST = "manifest.json"
FORMAT = "polymargin-model"
VERSION = 1
MOST_MEMBERS = 100_000
_LOCAL_HEADER = 30  # bytes of a zip member's header, its name apart
_LONGEST_HEADER = 10_000  # bytes of a .npy file before its numbers
_SAME_DATE = (1980, 1, 1, 0, 0, 0)  # equal models give equal files
_ZIP32 = 2**31 - 1
_KINDS = "biuf"


# --- writing -------------------------------------------------------------------------------------


def write_archive(path: Any, manifest: dict[str, Any], arrays: list[NDArray]) -> None:
    """Write a model file whole or not at all.

    Parameters
    ----------
    path : path
        It is replaced when the new file is complete and on disk.
    manifest : dict
        JSON; "format", "version" and "arrays" are added.
    arrays : list of ndarray
        Array i becomes ``arrays/i.npy``.
    """
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        entries = {}
        for i, array in enumerate(arrays):
            name = f"arrays/{i}.npy"
            entries[name] = _write_array(archive, name, array)
        head = {"format": FORMAT, "version": VERSION}
        text = json.dumps({**head, **manifest, "arrays": entries}, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(MANIFEST, _SAME_DATE), text.encode())


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray) -> dict[str, Any]:
    """Add an array without another copy of it; return its entry of the manifest."""
    values = np.ascontiguousarray(array)  # one-dimensional at least, hence the shape below
    header = io.BytesIO()
    fields = npy.header_data_from_array_1_0(values) | {"shape": array.shape}
    npy.write_array_header_1_0(header, fields)
    parts: list[Any] = [header.getvalue(), values.reshape(-1).view(np.uint8).data]
    size, digest = sum(map(len, parts)), hashlib.sha256()
    with archive.open(zipfile.ZipInfo(name, _SAME_DATE), "w", force_zip64=size > _ZIP32) as member:
        for part in parts:
            member.write(part)
            digest.update(part)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "size": size,
        "sha256": digest.hexdigest(),
    }


# --- reading -------------------------------------------------------------------------------------


class Archive:
    """A model file that agrees with its manifest; arrays are read and checked when asked for.

    Use it in a ``with`` statement.
    """

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            with self._sound():
                self._zip = zipfile.ZipFile(self._file)
                members = self._checked_members()
                self.manifest = self._read_manifest(members)
                self._check_arrays(members)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: Any) -> None:
        self._zip.close()
        self._file.close()

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Raise whatever a damaged file makes the libraries raise as `ModelFileError`."""
        try:
            yield
        except ModelFileError:
            raise
        except (Exception, RecursionError) as error:
            raise self.error(f"it is damaged or no model file ({error})") from error

    def error(self, what: str) -> ModelFileError:
        """An error with the file's name."""
        return ModelFileError(f"{self.path} cannot be read as a polymargin model: {what}.")

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        infos = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        members = {info.filename: info for info in infos}
        if len(members) != len(infos) or len(infos) > MOST_MEMBERS:
            raise self.error("it has repeated members, or too many")
        if MANIFEST not in members:
            raise self.error(f"it has no {MANIFEST}")
        end = 0
        for info in infos:
            stored = info.compress_type == zipfile.ZIP_STORED
            if not stored or info.compress_size != info.file_size or info.flag_bits & 1:
                raise self.error(f"its member {info.filename!r} is compressed or encrypted")
            if info.header_offset < end:
                raise self.error("its members overlap")
            end = info.header_offset + _LOCAL_HEADER + info.file_size
        if end > self.size:
            raise self.error("it is cut short")
        return members

    def _read_manifest(self, members: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
        manifest = json.loads(self._zip.read(members[MANIFEST]))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self.error("its manifest is not that of a model")
        version = manifest.get("version")
        if not isinstance(version, int) or version < 1:
            raise self.error("its manifest has no version")
        if version > VERSION:
            raise self.error(
                f"it has version {version} of the format, and this polymargin reads up to "
                f"{VERSION}; update polymargin"
            )
        return manifest

    def _check_arrays(self, members: dict[str, zipfile.ZipInfo]) -> None:
        """Names and sizes, before anything is read."""
        entries = self.manifest["arrays"]
        if set(members) != {MANIFEST, *entries}:
            raise self.error("its members are not those of the manifest")
        for name, entry in entries.items():
            if members[name].file_size != entry["size"]:
                raise self.error(f"the array {name!r} has another size than in the manifest")
            dtype, shape = np.dtype(entry["dtype"]), entry["shape"]
            if dtype.kind not in _KINDS or not all(type(n) is int and n >= 0 for n in shape):
                raise self.error(f"the array {name!r} is not one of numbers")
            content = math.prod(shape) * dtype.itemsize
            if not content < entry["size"] <= content + _LONGEST_HEADER:
                raise self.error(f"the array {name!r} has a size that does not fit its shape")

    def array(self, name: Any) -> NDArray:
        """Read an array."""
        with self._sound():
            entry = self.manifest["arrays"][name]
            content = bytearray(entry["size"])
            member: Any
            with self._zip.open(name) as member:
                if member.readinto(content) != len(content):
                    raise self.error("it is cut short")
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise self.error(f"the checksum of the array {name!r} is wrong")
            stream = io.BytesIO(content[:_LONGEST_HEADER])
            if npy.read_magic(stream) != (1, 0):
                raise self.error(f"the array {name!r} has an unknown version")
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
            if list(shape) != entry["shape"] or dtype.str != entry["dtype"] or fortran:
                raise self.error(f"the array {name!r} is not what the manifest says")
            values = np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape)
            return np.require(values, requirements=["A", "W"])
