"""Model files: save, load, and look at one without loading it."""

from polymargin.models.file import ModelCard, inspect_model, load, save
from polymargin.models.known import ModelFileError

__all__ = ["ModelCard", "ModelFileError", "inspect_model", "load", "save"]
