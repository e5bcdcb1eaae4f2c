"""Bad model files: cut, flipped, swollen or forged. They are refused, and never run anything."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polymargin
from polymargin.io import ModelFileError, inspect_model
from tests.models.fitted import ROW_MODELS, TEXT_MODELS, X

in_a_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, fitted):
    """The bytes of model files by name."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in fitted.items():
        polymargin.save(model, folder / name)
    return {name: (folder / name).read_bytes() for name in fitted}


def inputs_of(name: str):
    return ["the cat sat on a dog"] if name in TEXT_MODELS else X


def refused(content: bytes, tmp_path, match: str = "cannot be read as a polymargin model") -> None:
    path = tmp_path / "bad.pmz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        polymargin.load(path)


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def forged(content: bytes, change) -> bytes:
    """The same archive with another manifest."""
    parts = members(content)
    manifest = json.loads(parts["manifest.json"])
    change(manifest)
    return zipped({**parts, "manifest.json": json.dumps(manifest).encode()})


# --- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "larank", "tf-idf"])
def test_truncated_anywhere(tmp_path, saved, name):
    content = saved[name]
    for end in {0, 1, 100, len(content) // 2, len(content) - 1, *range(0, len(content), 2003)}:
        refused(content[:end], tmp_path)


@in_a_folder
@given(data=st.data())
def test_flipped_bits_are_refused_or_harmless(tmp_path, saved, fitted, data):
    name = data.draw(st.sampled_from(sorted(saved)))
    content = bytearray(saved[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "bad.pmz"
    path.write_bytes(content)
    try:
        model = polymargin.load(path)
    except ModelFileError:
        return
    inputs = inputs_of(name)  # the flips were in fields of the zip format that nobody reads
    assert np.array_equal(model.decision_function(inputs), fitted[name].decision_function(inputs))


@in_a_folder
@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path, content):
    refused(content, tmp_path)
    refused(b"PK\x03\x04" + content, tmp_path)


def test_wrong_contents_with_a_right_crc(tmp_path, saved):
    parts = members(saved["linear"])
    array = bytearray(parts["arrays/0.npy"])
    array[-1] ^= 1
    refused(zipped({**parts, "arrays/0.npy": bytes(array)}), tmp_path, "checksum")


# --- forgeries -----------------------------------------------------------------------------------


def test_newer_versions_and_other_archives(tmp_path, saved):
    newer = forged(saved["linear"], lambda manifest: manifest.update(version=2))
    refused(newer, tmp_path, "version 2 of the format.*update polymargin")
    refused(forged(saved["linear"], lambda m: m.update(version="x")), tmp_path, "no version")
    refused(forged(saved["linear"], lambda m: m.update(format="else")), tmp_path, "manifest")
    refused(zipped({"a.txt": b"hello"}), tmp_path, "no manifest")
    refused(zipped({"manifest.json": b"[" * 100_000}), tmp_path)
    refused(zipped({"manifest.json": b"{}"}), tmp_path)


def test_pickles_are_not_opened(tmp_path, saved):
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    refused(pickle.dumps(Evil()), tmp_path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    content = buffer.getvalue()

    def point_to_pickle(manifest):
        entry = manifest["arrays"]["arrays/0.npy"]
        entry.update(
            dtype="|O", shape=[1], size=len(content), sha256=hashlib.sha256(content).hexdigest()
        )

    swapped = zipped({**members(saved["linear"]), "arrays/0.npy": content})
    refused(forged(swapped, point_to_pickle), tmp_path)
    keep_dtype = forged(
        swapped, lambda m: (point_to_pickle(m), m["arrays"]["arrays/0.npy"].update(dtype="<f8"))
    )
    refused(keep_dtype, tmp_path)


def test_bombs(tmp_path, saved):
    parts = members(saved["linear"])
    refused(zipped(parts, zipfile.ZIP_DEFLATED), tmp_path, "compressed")
    bomb = {**parts, "arrays/0.npy": b"\0" * 50_000_000}
    refused(zipped(bomb, zipfile.ZIP_DEFLATED), tmp_path, "compressed")

    def huge(manifest):
        manifest["arrays"]["arrays/0.npy"].update(shape=[10**12, 10**6])

    refused(forged(saved["linear"], huge), tmp_path, "does not fit its shape")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    content = header.getvalue() + bytes(64)

    def lie(manifest):
        entry = manifest["arrays"]["arrays/0.npy"]
        entry.update(
            shape=[8], dtype="<f8", size=len(content), sha256=hashlib.sha256(content).hexdigest()
        )

    refused(forged(zipped({**parts, "arrays/0.npy": content}), lie), tmp_path, "manifest says")
    strings = {
        "$strings": {"dtype": "str", "shape": [2**15], "values": ["x" * 2**15] + [""] * 2**15}
    }
    swollen = forged(saved["linear"], lambda m: m["model"]["state"].update(classes_=strings))
    refused(swollen, tmp_path, "more than such a file may ask for")


def test_overlapping_members(tmp_path, saved):
    """A second entry of the directory that points at the bytes of the first."""
    content = saved["linear"]
    first = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", first + 4)
    end = content.index(b"PK\x05\x06")
    offset = slice(second + 42, second + 46)
    copied = bytearray(content)
    copied[offset] = content[first + 42 : first + 46]
    assert end > second
    refused(bytes(copied), tmp_path, "overlap")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "arrays/../../evil", "C:\\e.npy"])
def test_names_of_members_are_never_paths(tmp_path, saved, name):
    refused(zipped({**members(saved["linear"]), name: b"x"}), tmp_path, "not those of the manifest")
    parts = members(saved["linear"])
    parts[name] = parts.pop("arrays/0.npy")

    def rename(manifest):
        manifest["arrays"][name] = manifest["arrays"].pop("arrays/0.npy")

    refused(forged(zipped(parts), rename), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.pmz"]


def test_repeated_members(tmp_path, saved):
    buffer = io.BytesIO(saved["linear"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr("manifest.json", members(saved["linear"])["manifest.json"])
    refused(buffer.getvalue(), tmp_path, "repeated")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "sklearn.FunctionTransformer",
        "polymargin.models.known.Encoder",
        3,
        None,
    ],
)
def test_unknown_classes(tmp_path, saved, name):
    refused(forged(saved["linear"], lambda m: m["model"].update({"$object": name})), tmp_path)
    scaled = forged(
        saved["scaled"],
        lambda m: m["model"]["params"]["steps"][0][1].update({"$object": name}),
    )
    refused(scaled, tmp_path)


def set_state(key, value, step=None):
    def change(manifest):
        model = manifest["model"]
        if step is not None:
            model = model["params"]["steps"][step][1]
        model["state"][key] = value

    return change


def number_word(number):
    """Give the first word of a vocabulary another number, which sparse matrices would use."""

    def change(manifest):
        state = manifest["model"]["params"]["steps"][0][1]["state"]
        state["vocabulary_"]["$dict"][0][1] = number

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *[(name, number_word(n)) for name in ("tf", "tf-idf", "counts") for n in (-1, 2**40, 0.5)],
        ("tf", lambda m: (number_word(0)(m), number_word(1)(m))),
        ("linear", set_state("predict", "evil")),
        ("linear", set_state("__class__", "evil")),
        ("linear", set_state("_warm_start_state", 1)),
        ("linear", set_state("coef_", None)),
        ("linear", set_state("coef_", [[1.0]])),
        ("linear", set_state("n_features_in_", 3)),
        ("linear", set_state("n_features_in_", -1)),
        ("linear", set_state("classes_", {"$tuple": [0, 1, 2]})),
        ("linear", set_state("coef_", {"$array": "arrays/99.npy"})),
        ("linear", set_state("coef_", {"$array": {}})),
        ("linear", set_state("coef_", {"$unknown": 1})),
        ("linear", lambda m: m["model"]["params"].update(C="a")),
        ("linear", lambda m: m["model"]["params"].update(evil=1)),
        ("linear", lambda m: m["model"]["params"].update(checkpoint="/etc/evil")),
        ("linear", lambda m: m["model"]["params"].update(loss="evil")),
        ("linear", lambda m: m.pop("model")),
        ("linear", lambda m: m.update(model=[])),
        ("linear", lambda m: m.update(arrays=[])),
        ("linear", lambda m: m["arrays"]["arrays/0.npy"].pop("sha256")),
        ("kernel", set_state("support_vectors_", None)),
        ("kernel", set_state("gamma_", "x")),
        ("tf-idf", set_state("vocabulary_", {"$dict": [["cat", 10**9]]}, step=0)),
        ("tf-idf", set_state("vocabulary_", {"$dict": [["cat", -1]]}, step=0)),
        ("tf-idf", set_state("vocabulary_", {"$dict": [["cat", 0]]}, step=0)),
        ("tf-idf", set_state("_tfidf", None, step=0)),
        (
            "tf-idf",
            lambda m: m["model"]["params"]["steps"][0][1]["params"].update(input="filename"),
        ),
        ("tf-idf", lambda m: m["model"]["params"].update(memory="/tmp/evil")),
        ("tf-idf", lambda m: m["model"]["params"].update(steps=[])),
        ("scaled", set_state("scale_", {"$array": "arrays/99.npy"}, step=0)),
        ("larank", lambda m: m["model"].pop("machine")),
        ("larank", lambda m: m["model"]["machine"]["$dict"].pop(3)),
    ],
)
def test_forged_manifests(tmp_path, saved, name, change):
    refused(forged(saved[name], change), tmp_path)


def with_array(content: bytes, name: str, change) -> bytes:
    """The same archive with another array, honestly described."""
    parts = members(content)
    array = change(np.load(io.BytesIO(parts[name])))
    buffer = io.BytesIO()
    np.save(buffer, array)
    parts[name] = buffer.getvalue()

    def describe(manifest):
        manifest["arrays"][name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "size": len(parts[name]),
            "sha256": hashlib.sha256(parts[name]).hexdigest(),
        }

    return forged(zipped(parts), describe)


@pytest.mark.parametrize("name", ROW_MODELS + TEXT_MODELS)
def test_arrays_that_do_not_fit_are_refused_or_harmless(tmp_path, saved, name):
    """Every array of every model in turn: too short, of huge numbers, negative, not finite."""
    count = len(members(saved[name])) - 1
    changes = [
        lambda a: a.ravel()[:-1],
        lambda a: np.full_like(a, 2**30 if a.dtype.kind != "b" else 1),
        lambda a: (a * 0 - 1).astype(a.dtype),
        lambda a: a * np.nan if a.dtype.kind == "f" else a + a.dtype.type(1),
    ]
    for i in range(count):
        for change in changes:
            path = tmp_path / "bad.pmz"
            path.write_bytes(with_array(saved[name], f"arrays/{i}.npy", change))
            try:
                model = polymargin.load(path)
            except ModelFileError:
                continue
            with np.errstate(all="ignore"):
                try:
                    model.predict(inputs_of(name))
                    if hasattr(model, "partial_fit"):
                        model.partial_fit(X[:60], model.classes_[[0, 1] * 30])
                except ValueError:
                    pass  # the estimator's own checks


@in_a_folder
@given(data=st.data())
def test_random_surgery_on_manifests(tmp_path, saved, data):
    name = data.draw(st.sampled_from(["linear", "kernel", "larank", "tf-idf", "scaled"]))
    anything = st.sampled_from(
        [None, True, 0, -1, 10**30, 1e308, "", "x", [], {}, {"$float": "nan"}, {"$tuple": []}]
    )

    def change(manifest):
        node, key = manifest, data.draw(st.sampled_from(sorted(manifest)))
        for _ in range(data.draw(st.integers(0, 8))):
            child = node[key]
            if not isinstance(child, (dict, list)) or not child:
                break
            node = child
            keys = sorted(node) if isinstance(node, dict) else range(len(node))
            key = data.draw(st.sampled_from(list(keys)))
        node[key] = copy.deepcopy(data.draw(anything))

    path = tmp_path / "bad.pmz"
    path.write_bytes(forged(saved[name], change))
    for reader in (polymargin.load, inspect_model):
        try:
            reader(path)
        except ModelFileError:
            continue
