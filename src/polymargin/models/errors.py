"""What goes wrong with model files."""


class ModelFileError(ValueError):
    """A model that cannot be written to a file, or a file that is not a sound model."""
