"""The lowest layer: files written whole or not at all, digests, and archives of arrays and JSON.

Model files and checkpoints are such archives. Nothing here imports anything else of polymargin.
"""

from polymargin.storage.archive import Archive, Format, write_archive
from polymargin.storage.atomic import StrPath, fresh_name, naming, replacing, sync
from polymargin.storage.digest import digest_of
from polymargin.storage.errors import (
    DamagedFileError,
    ForeignFileError,
    NewerFileError,
    StorageError,
)
from polymargin.storage.folders import TemporaryFolder, remove_folder
from polymargin.storage.limits import StringRoom, check_expansion
from polymargin.storage.tree import Array, Decoder, Encoder, Json, checked_sparse

__all__ = [
    "Archive",
    "Array",
    "DamagedFileError",
    "Decoder",
    "Encoder",
    "ForeignFileError",
    "Format",
    "Json",
    "NewerFileError",
    "StorageError",
    "StrPath",
    "StringRoom",
    "TemporaryFolder",
    "check_expansion",
    "checked_sparse",
    "digest_of",
    "fresh_name",
    "naming",
    "remove_folder",
    "replacing",
    "sync",
    "write_archive",
]
