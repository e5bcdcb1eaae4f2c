"""Models for other programs: LIBLINEAR's format, to and from; ONNX, to."""

from polymargin.export._liblinear import from_liblinear, to_liblinear
from polymargin.export._onnx import to_onnx

__all__ = ["from_liblinear", "to_liblinear", "to_onnx"]
