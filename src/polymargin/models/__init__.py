"""Model files: save, load, and look at one without loading it."""

from polymargin.models.errors import ModelFileError
from polymargin.models.file import ModelCard, inspect_model, load, save

__all__ = ["ModelCard", "ModelFileError", "inspect_model", "load", "save"]
