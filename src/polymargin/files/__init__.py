"""Data files: read any of them, write some, and those that do not fit in memory."""

from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.directory import convert_svmlight, open_directory, write_directory
from polymargin.files.read import read_data
from polymargin.files.sources import BlockSource, write_blocks
from polymargin.files.stored import StoredMatrix
from polymargin.files.streams import FORMATS, detect_format, detect_text_format
from polymargin.files.svmlight import iter_svmlight, write_svmlight
from polymargin.files.tables import need_pyarrow

__all__ = [
    "FORMATS",
    "BlockSource",
    "DataFileError",
    "Dataset",
    "StoredMatrix",
    "convert_svmlight",
    "detect_format",
    "detect_text_format",
    "iter_svmlight",
    "need_pyarrow",
    "open_directory",
    "read_data",
    "write_blocks",
    "write_directory",
    "write_svmlight",
]
