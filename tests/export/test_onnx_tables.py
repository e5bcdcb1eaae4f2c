"""Models of tables in ONNX give our labels and scores, also for what was missing or never seen."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from polymargin import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.export import to_onnx
from polymargin.models import ModelFileError
from polymargin.tables import decide, table_steps

pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

N = 120
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.8, RNG.normal(40, 9, N), np.nan),
        "height": RNG.normal(170, 10, N),
        "when": np.datetime64("2024-01-01", "s") + RNG.integers(0, 10**7, N),
        "town": RNG.choice(
            ["Bern", "Köln", "Oslo", "Rome", None], N, p=[0.4, 0.4, 0.1, 0.02, 0.08]
        ),
        "ok": RNG.random(N) < 0.5,
        "note": RNG.choice(["good late", "bad", "late bad", "good"], N),
    }
)
FRAME.loc[FRAME["town"] == "Rome", "town"] = "Oslo"
FRAME.loc[:1, "town"] = "Rome"
LABELS = np.where(FRAME["height"] > 170, FRAME["note"], "none")
NEW = pd.DataFrame(
    {
        "age": [np.nan, 30.0, 55.5, 41.0],
        "height": [np.nan, 150.0, 180.0, 171.0],
        "when": np.array(
            ["2024-02-29T23:00", "NaT", "2025-01-01T00:00", "1969-12-31T05:59"], "M8[s]"
        ),
        "town": ["Atlantis", None, "Rome", "Bern"],
        "ok": [True, None, False, True],
        "note": ["good unknown", "", None, "bad bad"],
    }
)


def fitted(last=None, **options):
    steps = table_steps(decide(FRAME, text=["note"], dates=True), **options)
    return Pipeline([*steps, ("svm", last or LinearMulticlassSVC(random_state=0))]).fit(
        FRAME, LABELS
    )


def run(proto, model, frame):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    first = model[0]
    columns = first.transform(frame)
    numbers = first.places("number", "date", "time")
    names = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    assert names == first.get_feature_names_out().tolist()
    given = {
        one.name: columns[:, [i]].astype(np.float32 if i in numbers else object)
        for i, one in enumerate(session.get_inputs())
    }
    return session.run(None, given)


@pytest.mark.parametrize("scaler", ["standard", None, MinMaxScaler()], ids=str)
def test_scores_agree(scaler):
    model = fitted(scaler=scaler, last=LinearMulticlassSVC(random_state=0, C=1e-3, max_iter=10**4))
    proto = to_onnx(model)
    for frame in (FRAME, NEW):
        label, scores = run(proto, model, frame)
        expected = model.decision_function(frame)
        scale = np.abs(model[-1].coef_).max() * 3000  # a float32 of a year
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5 * max(1, scale))
        best = np.sort(expected, axis=1)
        sure = best[:, -1] - best[:, -2] > 1e-3
        np.testing.assert_array_equal(label[sure], model.predict(frame)[sure])


def test_a_rare_category_matters_to_the_graph():
    """The frame has a category that shares its feature, and so does the graph."""
    model = fitted()
    encoder = model[1].named_transformers_["categories"]
    assert encoder._infrequent_indices[0] is not None
    first = NEW.assign(town=["Rome", "Mars", "Rome", "Mars"])
    label, scores = run(to_onnx(model), model, first)
    np.testing.assert_allclose(scores, model.decision_function(first), rtol=1e-3, atol=1e-2)
    same = run(to_onnx(model), model, NEW.assign(town=["Mars", "Rome", "Mars", "Rome"]))
    np.testing.assert_array_equal(scores, same[1])
    assert len(label) == len(NEW)


def test_names_that_look_alike_stay_apart():
    frame = FRAME.rename(columns={"age": "a b", "height": "a_b", "town": "größe"})
    steps = table_steps(decide(frame.drop(columns="when"), text=["note"]))
    model = Pipeline([*steps, ("svm", LinearMulticlassSVC(random_state=0))]).fit(frame, LABELS)
    label, _ = run(to_onnx(model), model, frame)
    assert np.mean(label == model.predict(frame)) > 0.98


def test_what_cannot_be_converted_is_named():
    with pytest.raises(ModelFileError, match="HashingVectorizer"):
        to_onnx(fitted(words=lambda: HashingVectorizer(n_features=64)))
    with pytest.raises(ModelFileError, match="not LaRankClassifier"):
        to_onnx(fitted(last=LaRankClassifier()))


def test_a_kernel_machine_of_a_table():
    model = fitted(last=KernelMulticlassSVC(random_state=0))
    label, scores = run(to_onnx(model), model, FRAME)
    np.testing.assert_allclose(scores, model.decision_function(FRAME), rtol=1e-3, atol=1e-3)
    assert np.mean(label == model.predict(FRAME)) > 0.98
