"""Data files: read any of them, write some, and those that do not fit in memory."""

from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.directory import convert_svmlight, open_directory, write_directory
from polymargin.files.read import read_data
from polymargin.files.sources import BlockSource, write_blocks
from polymargin.files.stored import StoredMatrix
from polymargin.files.streams import FORMATS, detect_format
from polymargin.files.svmlight import iter_svmlight, write_svmlight

__all__ = [
    "FORMATS",
    "BlockSource",
    "DataFileError",
    "Dataset",
    "StoredMatrix",
    "convert_svmlight",
    "detect_format",
    "iter_svmlight",
    "open_directory",
    "read_data",
    "write_blocks",
    "write_directory",
    "write_svmlight",
]
