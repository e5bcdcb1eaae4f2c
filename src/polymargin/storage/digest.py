"""The digest of everything that is kept or compared: SHA-256."""

from __future__ import annotations

import hashlib

import numpy as np


def digest_of(*parts: object) -> str:
    """A hash of arrays (values, types and shapes), and of anything else by its ``repr``."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            total.update(repr(part).encode())
    return total.hexdigest()
