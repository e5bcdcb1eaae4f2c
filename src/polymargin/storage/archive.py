"""The container of model files and checkpoints: a zip archive of a JSON manifest and .npy arrays.

Members are stored without compression and may not overlap, so that together they are no larger than
the file. The manifest
lists every array with type, shape, size and SHA-256; an archive that differs from its manifest is
refused before its arrays are read. The seal, at the end of the file (zip's comment), is the SHA-256
of all that is in no array: headers, manifest and directory. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.lib import format as npy

from polymargin.storage.atomic import StrPath, replacing
from polymargin.storage.errors import (
    DamagedFileError,
    ForeignFileError,
    NewerFileError,
    StorageError,
)
from polymargin.storage.tree import Array, Json

MANIFEST = "manifest.json"
SEAL = b"polymargin sha256 "
_SEAL_DIGITS = 64
_FIRST_NAMES = (b"arrays/0.npy", MANIFEST.encode())
_MOST_MEMBERS = 100_000
_LOCAL_HEADER = 30  # bytes of a zip member's header; name and extra field follow
_LENGTHS = slice(26, 30)  # of those two, in it
_LONGEST_HEADER = 10_000  # bytes of a .npy file before its numbers
_SAME_DATE = (1980, 1, 1, 0, 0, 0)  # equal contents give equal files
_ZIP32 = 2**31 - 1
_KINDS = "biuf"


@dataclass(frozen=True)
class Format:
    """A kind of archive."""

    name: str  # what its manifests have under "format"
    version: int  # that is written, and the last one that is read
    must_be_sealed: bool = True  # a file without a seal is refused


# --- writing -------------------------------------------------------------------------------------


def write_archive(
    path: StrPath,
    format: Format,
    manifest: Mapping[str, Json],
    arrays: Sequence[Array],
    *,
    via: StrPath | None = None,
) -> None:
    """Write an archive whole or not at all; `via` as in :func:`~polymargin.storage.replacing`.

    The manifest is JSON, to which "format", "version" and "arrays" are added; array i becomes
    ``arrays/i.npy``.
    """
    with replacing(path, via=via) as file:
        archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        try:
            names = [f"arrays/{i}.npy" for i in range(len(arrays))]
            entries = {
                name: _write_array(archive, name, array)
                for name, array in zip(names, arrays, strict=True)
            }
            head = {"format": format.name, "version": format.version}
            text = json.dumps({**head, **manifest, "arrays": entries}, allow_nan=False)
            archive.writestr(zipfile.ZipInfo(MANIFEST, _SAME_DATE), text.encode())
            archive.comment = SEAL + b"0" * _SEAL_DIGITS
            archive.close()
        except BaseException:
            archive.fp = None  # else closing it, in the middle of a member, is an error of its own
            raise
        seal = _seal_of(file, archive.infolist())
        file.seek(-_SEAL_DIGITS, os.SEEK_END)
        file.write(seal)


def _write_array(archive: zipfile.ZipFile, name: str, array: Array) -> dict[str, Json]:
    """Add an array without another copy of it; return its entry of the manifest."""
    values = np.ascontiguousarray(array)  # one-dimensional at least, hence the shape below
    header = io.BytesIO()
    fields = npy.header_data_from_array_1_0(values) | {"shape": array.shape}
    npy.write_array_header_1_0(header, fields)
    size, digest = len(header.getvalue()) + values.nbytes, hashlib.sha256()
    with archive.open(zipfile.ZipInfo(name, _SAME_DATE), "w", force_zip64=size > _ZIP32) as member:
        for part in (header.getvalue(), values.reshape(-1).view(np.uint8).data):
            member.write(part)
            digest.update(part)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "size": size,
        "sha256": digest.hexdigest(),
    }


def _content_at(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where the content of a member begins; its own header tells."""
    file.seek(info.header_offset)
    name, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER)[_LENGTHS])
    return info.header_offset + _LOCAL_HEADER + int(name + extra)


def _seal_of(file: IO[bytes], members: Sequence[zipfile.ZipInfo]) -> bytes:
    """The digest of what is in no array, up to the seal; `members` are in the order of the file."""
    digest, position = hashlib.sha256(), 0
    for info in members:
        if info.filename != MANIFEST:
            content = _content_at(file, info)
            file.seek(position)
            digest.update(file.read(content - position))
            position = content + info.file_size
    file.seek(position)
    digest.update(file.read()[:-_SEAL_DIGITS])
    return digest.hexdigest().encode()


# --- reading -------------------------------------------------------------------------------------


@contextmanager
def _sound() -> Iterator[None]:
    """Raise whatever a damaged file makes the libraries raise as `DamagedFileError`."""
    try:
        yield
    except (StorageError, MemoryError):
        raise
    except Exception as error:
        raise DamagedFileError(f"it is damaged ({error})") from error


class Archive:
    """A file that agrees with its manifest; arrays are read and checked when asked for.

    Use it in a ``with`` statement. What is wrong with a file is raised as `StorageError`.
    """

    def __init__(self, path: StrPath, format: Format) -> None:
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            self.size = os.fstat(self._file.fileno()).st_size  # bytes
            with _sound():
                self._zip = self._opened()
                self._members = self._checked_members()
                sealed = self._zip.comment.startswith(SEAL)
                if sealed:
                    self._check_seal()
                self.manifest = self._read_manifest(format)
                if format.must_be_sealed and not sealed:
                    raise DamagedFileError("its seal is missing")
                self._check_arrays()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()
        self._file.close()

    def _opened(self) -> zipfile.ZipFile:
        start = self._file.read(_LOCAL_HEADER + max(map(len, _FIRST_NAMES)))
        ours = start.startswith(b"PK\3\4") and start[_LOCAL_HEADER:].startswith(_FIRST_NAMES)
        wrong = DamagedFileError if ours else ForeignFileError
        try:
            archive = zipfile.ZipFile(self._file)
        except zipfile.BadZipFile as error:
            raise wrong(f"it is damaged or something else ({error})") from error
        if MANIFEST not in archive.namelist():
            raise wrong(f"it has no {MANIFEST}")
        return archive

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        """The members in the order of the file."""
        infos = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        members = {info.filename: info for info in infos}
        if len(members) != len(infos) or len(infos) > _MOST_MEMBERS:
            raise DamagedFileError("it has repeated members, or too many")
        end = 0
        for info in infos:
            stored = info.compress_type == zipfile.ZIP_STORED
            if not stored or info.compress_size != info.file_size or info.flag_bits & 1:
                raise DamagedFileError(f"its member {info.filename!r} is compressed or encrypted")
            if info.header_offset < end:
                raise DamagedFileError("its members overlap")
            end = info.header_offset + _LOCAL_HEADER + info.file_size
        if end > self.size:
            raise DamagedFileError("it is cut short")
        return members

    def _check_seal(self) -> None:
        self._file.seek(-_SEAL_DIGITS, os.SEEK_END)
        if self._file.read() != _seal_of(self._file, list(self._members.values())):
            raise DamagedFileError("its seal is broken")

    def _read_manifest(self, format: Format) -> dict[str, Json]:
        manifest = json.loads(self._zip.read(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != format.name:
            raise ForeignFileError(f"its manifest is not that of a {format.name}")
        version = manifest.get("version")
        if not isinstance(version, int) or version < 1:
            raise DamagedFileError("its manifest has no version")
        if version > format.version:
            raise NewerFileError(version, format.version)
        return manifest

    def _check_arrays(self) -> None:
        """Names and sizes, before anything is read."""
        entries = self.manifest["arrays"]
        if set(self._members) != {MANIFEST, *entries}:
            raise DamagedFileError("its members are not those of the manifest")
        for name, entry in entries.items():
            if self._members[name].file_size != entry["size"]:
                raise DamagedFileError(f"the array {name!r} has another size than in the manifest")
            dtype, shape = np.dtype(entry["dtype"]), entry["shape"]
            if dtype.kind not in _KINDS or not all(type(n) is int and n >= 0 for n in shape):
                raise DamagedFileError(f"the array {name!r} is not one of numbers")
            content = math.prod(shape) * dtype.itemsize
            if not content < entry["size"] <= content + _LONGEST_HEADER:
                raise DamagedFileError(f"the array {name!r} has a size that does not fit its shape")

    def array(self, name: str) -> Array:
        """Read an array."""
        with _sound():
            entry = self.manifest["arrays"][name]
            content = bytearray(entry["size"])
            self._file.seek(_content_at(self._file, self._members[name]))
            if self._file.readinto(content) != len(content):
                raise DamagedFileError("it is cut short")
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise DamagedFileError(f"the checksum of the array {name!r} is wrong")
            stream = io.BytesIO(content[:_LONGEST_HEADER])
            if npy.read_magic(stream) != (1, 0):
                raise DamagedFileError(f"the array {name!r} has an unknown version")
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
            if list(shape) != entry["shape"] or dtype.str != entry["dtype"] or fortran:
                raise DamagedFileError(f"the array {name!r} is not what the manifest says")
            values = np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape)
            return np.require(values, requirements=["A", "W"])
