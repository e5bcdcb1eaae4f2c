"""Data files: read any of them, write some, and those that do not fit in memory."""

from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.directory import convert_svmlight, open_directory, write_directory
from polymargin.files.read import read_data
from polymargin.files.streams import FORMATS, detect_format
from polymargin.files.svmlight import iter_svmlight, write_svmlight

__all__ = [
    "FORMATS",
    "DataFileError",
    "Dataset",
    "convert_svmlight",
    "detect_format",
    "iter_svmlight",
    "open_directory",
    "read_data",
    "write_directory",
    "write_svmlight",
]
