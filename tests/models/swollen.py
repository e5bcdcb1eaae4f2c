"""Small files that ask for much memory, and what it takes to read them, as a program."""

from __future__ import annotations

import io
import json
import resource
import sys
import zipfile
from pathlib import Path

import numpy as np

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.io import Dataset, inspect_model, read_data, write_directory
from polymargin.solvers.checkpoint import FORMAT, Checkpoint
from polymargin.storage import Archive, Array, Format, Json, write_archive

MODEL = Format("polymargin-model", 1, must_be_sealed=False)


def _rewritten(source: Path, target: Path, change, more: list[Array]) -> None:
    """A model file with another manifest and more arrays, sealed as if it were ours."""
    with Archive(source, MODEL) as archive:
        manifest = json.loads(json.dumps(archive.manifest))
        arrays = [archive.array(name) for name in manifest.pop("arrays")]
    change(manifest, len(arrays))
    write_archive(target, MODEL, manifest, arrays + more)


def model_files(folder: Path) -> None:
    """Models: one array many times, many strings, pairs of costs that are not there, much JSON."""
    X = np.random.default_rng(0).standard_normal((30, 4))
    polymargin.save(LinearMulticlassSVC().fit(X, np.arange(30) % 3), folder / "sound")

    def put(value) -> object:
        return lambda manifest, i: manifest["model"]["state"].update(history_=value(i))

    def repeats(i: int) -> Json:
        return [{"$array": f"arrays/{i}.npy"}] * 4000

    block = np.zeros(10**6, np.uint8)
    _rewritten(folder / "sound", folder / "arrays.pmz", put(repeats), [block])

    def strings(i: int) -> Json:
        one = {"dtype": "str", "shape": [4001], "values": ["x" * 8000] + [""] * 4000}
        return [{"$strings": one}] * 30

    _rewritten(folder / "sound", folder / "strings.pmz", put(strings), [])

    def costs(manifest, i: int) -> None:
        n = 100_000
        state = manifest["model"]["state"]
        state["classes_"] = {"$array": f"arrays/{i}.npy"}
        state["coef_"] = {"$array": f"arrays/{i + 1}.npy"}
        state["intercept_"] = {"$array": f"arrays/{i + 2}.npy"}
        state["n_features_in_"] = 0
        pairs = [[{"$tuple": [j, j]}, 0.0] for j in range(n)]
        manifest["model"]["params"]["cost_matrix"] = {"$dict": pairs}

    n = 100_000
    more = [np.arange(n, dtype=np.int32), np.zeros((n, 0)), np.zeros(n)]
    _rewritten(folder / "sound", folder / "costs.pmz", costs, more)

    def notes(manifest, i: int) -> None:
        manifest["notes"] = {"much": [[]] * 500_000}

    _rewritten(folder / "sound", folder / "json.ok.pmz", notes, [])


def checkpoint(folder: Path) -> None:
    """A checkpoint of one array many times."""
    state = {"$dict": [["run", [{"$array": "arrays/0.npy"}] * 4000]]}
    manifest = {"made_for": {}, "state": state}
    write_archive(folder / "arrays.checkpoint", FORMAT, manifest, [np.zeros(10**6, np.uint8)])


def _npy(array: Array | None, shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    file = io.BytesIO()
    fields = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue() + (b"" if array is None else array.tobytes())


def _zeros_deflated(path: Path, members: dict[str, bytes], name: str, shape: tuple) -> None:
    """An archive with a member of zeros that is never in memory here."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, content in members.items():
            archive.writestr(f"{key}.npy", content)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            file.write(_npy(None, shape))
            zeros = bytes(2**20)
            for _ in range(int(np.prod(shape)) * 8 // 2**20):
                file.write(zeros)


def data_files(folder: Path) -> None:
    """Archives of NumPy whose headers or contents are huge, and a directory with a long word."""
    _zeros_deflated(folder / "zeros.npz", {}, "X", (2048, 2**17))  # 2 GB in 2 MB
    for name, shape in (("header", (10**9, 1)), ("wide", (1, 10**15))):
        with zipfile.ZipFile(folder / f"{name}.npz", "w") as archive:
            archive.writestr("X.npy", _npy(np.zeros(4), shape))
    parts = {"data": np.zeros(0), "indices": np.zeros(0, np.int32), "indptr": np.zeros(2, np.int32)}
    np.savez(folder / "tall.npz", **parts, shape=np.array([10**11, 1]), format=b"csc")
    y = np.array(["a"] * 20_000)
    write_directory(Dataset(X=np.zeros((20_000, 1)), y=y), folder / "words")
    meta = json.loads((folder / "words" / "meta.json").read_text())
    meta["classes"] = ["x" * 200_000]
    (folder / "words" / "meta.json").write_text(json.dumps(meta))


def read_all(folder: Path) -> None:
    """Print the name of each file, what came of it, and the memory that reading has added."""

    def growth() -> int:
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024

    readers = {
        ".pmz": [polymargin.load, inspect_model],
        ".npz": [read_data],
        ".checkpoint": [lambda path: Checkpoint(path).open({})],
        "": [read_data],
    }
    polymargin.load(folder / "sound")  # whatever is imported on the way
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in sorted(folder.iterdir()):
        if path.name == "sound":
            continue
        for reader in readers[path.suffix]:
            try:
                reader(path)
                found = "read"
            except ValueError as error:
                found = f"{type(error).__name__}: {error}"
            found = [path.name, reader.__name__, found[:300], growth()]
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    read_all(Path(sys.argv[1]))
