"""Where fuzzing begins: a sound input of every target. ``python -m fuzz.seeds FOLDER``."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from fuzz import targets
from polymargin import LinearMulticlassSVC
from polymargin.export import to_liblinear
from polymargin.solvers.checkpoint import FORMAT
from polymargin.storage import write_archive

CSV = b"a,b,label\n1,2.5,x\n-3,4e2,y\n"
JSONL = b'{"a": 1, "b": 2.5, "label": "x"}\n{"a": -3, "b": 4e2, "label": "y"}\n'
SVMLIGHT = b"\xef\xbb\xbf1 qid:3 1:0.5 3:-2e3 # note\r\n\n-1 4294967296:1 2:1\n"


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return struct.pack("<H", len(file.getvalue())) + file.getvalue()


def seeds() -> dict[str, list[bytes]]:
    """Inputs by target."""
    folder, (X, y) = targets.folder(), targets.data()
    trees = {kind: targets.saved(kind)[0]["model"] for kind in ("linear", "larank")}
    manifest, arrays = targets.checkpointed()
    write_archive(folder / "seed", FORMAT, manifest, arrays)
    to_liblinear(LinearMulticlassSVC().fit(X, np.array(["p", "q", "r"])[y]), folder / "lin")
    text, names = (folder / "lin").read_bytes(), (folder / "lin.labels.json").read_bytes()
    file, matrix = io.BytesIO(), sparse.csr_array(X[:3])
    np.savez(file, X=X[:3], y=y[:3])
    meta = {"format": "polymargin-data", "version": 1, "layout": "dense", "shape": [3, 2]}
    words = json.dumps(meta | {"n_examples": 3, "classes": ["u", "v"]}).encode()
    parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape), y[:3])
    return {
        "model": [(folder / "linear").read_bytes()],
        "model_tree": [json.dumps(trees["linear"]).encode()],
        "larank_tree": [json.dumps(trees["larank"]).encode()],
        "checkpoint": [(folder / "seed").read_bytes()],
        "checkpoint_tree": [json.dumps(manifest["state"]).encode()],
        "csv": [CSV, CSV.replace(b",", b"\t"), b'text,label\n"a ""b""\nc",7\nd,8\n'],
        "jsonl": [JSONL, b'{"text": "a b", "label": 1}\n'],
        "svmlight": [SVMLIGHT, gzip.compress(SVMLIGHT, mtime=0)],
        "npz": [file.getvalue()],
        "npz_members": [b"".join(map(_npy, (*parts, np.array(b"csr"))))],
        "directory": [words + b"\n-\n" + _npy(np.array([0, 1, 0], np.int32))[2:]],
        "liblinear": [text, text + b"\n-\n" + names],
    }


def write(folder: Path) -> None:
    """Add them to corpora below a folder."""
    for target, inputs in seeds().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for i, content in enumerate(inputs):
            (folder / target / f"seed{i}").write_bytes(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
