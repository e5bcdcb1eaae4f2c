"""Data files and model files.

:func:`read_data` reads any data file into a :class:`Dataset`; :func:`iter_svmlight` and
:func:`convert_svmlight` take files that do not fit in memory; :func:`write_directory` and
:func:`open_directory` keep data so that they open instantly. :func:`save` and :func:`load` (also
``polymargin.save`` and ``polymargin.load``) keep models; :func:`inspect_model` looks at one.
"""

from polymargin.io._dataset import Dataset
from polymargin.io._directory import convert_svmlight, open_directory, write_directory
from polymargin.io._errors import DataFileError, ModelFileError
from polymargin.io._models import ModelCard, inspect_model, load, save
from polymargin.io._read import read_data
from polymargin.io._streams import FORMATS, detect_format
from polymargin.io._svmlight import iter_svmlight, write_svmlight

__all__ = [
    "FORMATS",
    "DataFileError",
    "Dataset",
    "ModelCard",
    "ModelFileError",
    "convert_svmlight",
    "detect_format",
    "inspect_model",
    "iter_svmlight",
    "load",
    "open_directory",
    "read_data",
    "save",
    "write_directory",
    "write_svmlight",
]
