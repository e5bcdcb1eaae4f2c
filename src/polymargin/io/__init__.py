"""Data files and model files.

:func:`read_data` reads any data file into a :class:`Dataset`; :func:`iter_svmlight` and
:func:`convert_svmlight` take files that do not fit in memory; :func:`write_directory` and
:func:`open_directory` keep data so that they open instantly; a :class:`BlockSource` gives them in
blocks, from anywhere. :func:`~polymargin.save` and :func:`~polymargin.load` (also
``polymargin.save`` and ``polymargin.load``) keep models; :func:`inspect_model` looks at one.
"""

from polymargin.files import (
    FORMATS,
    BlockSource,
    DataFileError,
    Dataset,
    convert_svmlight,
    detect_format,
    detect_text_format,
    iter_svmlight,
    open_directory,
    read_data,
    write_blocks,
    write_directory,
    write_svmlight,
)
from polymargin.models import ModelCard, ModelFileError, inspect_model, load, save

__all__ = [
    "FORMATS",
    "BlockSource",
    "DataFileError",
    "Dataset",
    "ModelCard",
    "ModelFileError",
    "convert_svmlight",
    "detect_format",
    "detect_text_format",
    "inspect_model",
    "iter_svmlight",
    "load",
    "open_directory",
    "read_data",
    "save",
    "write_blocks",
    "write_directory",
    "write_svmlight",
]
