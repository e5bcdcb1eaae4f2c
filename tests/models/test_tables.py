"""Models of tables, pipelines with ColumnTransformer and calibrated models in model files."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.io import ModelFileError, inspect_model
from polymargin.tables import decide, table_steps
from tests.models.fitted import KINDS, TEXTS, X, Y, linear

N = 80
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 7, RNG.normal(40, 9, N), np.nan),
        "town": RNG.choice(
            ["Bern", "Köln", "Oslo", "Rome", "Lima"], N, p=[0.5, 0.4, 0.06, 0.02, 0.02]
        ),
        "group": pd.Series(RNG.choice(["a", "b", None], N), dtype=object),
        "note": RNG.choice(["good late", "bad", "late bad", "good"], N),
    }
)
LABELS = np.array(["x", "y", "z"])[(FRAME["age"].fillna(40) // 5 % 3).astype(int)]


def through_a_file(model, tmp_path):
    polymargin.save(model, tmp_path / "model.pmz")
    return polymargin.load(tmp_path / "model.pmz")


def of_frame(*parts, **options):
    return make_pipeline(ColumnTransformer(list(parts), **options), linear()).fit(FRAME, LABELS)


FILLED = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
MODELS = {
    "by name": lambda: of_frame(
        ("n", FILLED, ["age"]),
        ("c", OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3), ["town"]),
        ("t", TfidfVectorizer(), "note"),
    ),
    "missing categories": lambda: of_frame(
        ("c", OneHotEncoder(handle_unknown="ignore"), ["group", "town"])
    ),
    "most frequent": lambda: of_frame(
        (
            "c",
            make_pipeline(
                SimpleImputer(missing_values=None, strategy="most_frequent"),
                OneHotEncoder(handle_unknown="ignore"),
            ),
            ["group"],
        )
    ),
    "dropped categories": lambda: of_frame(
        ("c", OneHotEncoder(drop="first", min_frequency=3), ["town"]),
        ("d", "drop", ["note"]),
    ),
    "the rest passes": lambda: of_frame(
        ("c", OneHotEncoder(sparse_output=False), ["town"]),
        ("d", "drop", ["note", "group"]),
        ("n", FILLED, ["age"]),
        remainder="passthrough",
    ),
    "ours": lambda: Pipeline([*table_steps(decide(FRAME, text=["note"])), ("svm", linear())]).fit(
        FRAME, LABELS
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_pipelines_of_columns_come_back(tmp_path, name):
    model = MODELS[name]()
    back = through_a_file(model, tmp_path)
    new = FRAME.sample(40, random_state=0)
    if name != "dropped categories":
        new = new.assign(town=np.where(np.arange(40) % 5, new["town"], new["town"].iloc[0]))
    expected = model.decision_function(new)
    np.testing.assert_array_equal(back.decision_function(new), expected)
    np.testing.assert_array_equal(
        back[:-1].get_feature_names_out(), model[:-1].get_feature_names_out()
    )
    assert repr(back) == repr(model)
    again = through_a_file(back, tmp_path)
    np.testing.assert_array_equal(again.decision_function(new), expected)


def test_a_pipeline_with_a_category_never_seen(tmp_path):
    model = MODELS["by name"]()
    new = FRAME.assign(town="Atlantis")
    back = through_a_file(model, tmp_path)
    np.testing.assert_array_equal(back.decision_function(new), model.decision_function(new))


def test_the_rest_passes_also_without_names(tmp_path):
    selected = make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough")
    model = make_pipeline(selected, linear()).fit(X, Y)
    back = through_a_file(model, tmp_path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    chosen = make_column_transformer((StandardScaler(), slice(0, 3)))
    model = make_pipeline(chosen, linear()).fit(X, Y)
    back = through_a_file(model, tmp_path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_models_come_back(tmp_path, method, ensemble):
    model = CalibratedClassifierCV(linear(), method=method, cv=3, ensemble=ensemble).fit(X, Y)
    back = through_a_file(model, tmp_path)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    piped = make_pipeline(StandardScaler(), model).fit(X, Y)
    back = through_a_file(piped, tmp_path)
    np.testing.assert_array_equal(back.predict_proba(X), piped.predict_proba(X))


def test_calibrated_texts_come_back(tmp_path):
    inner = make_pipeline(TfidfVectorizer(), linear())
    model = CalibratedClassifierCV(inner, cv=2).fit(TEXTS, KINDS)
    back = through_a_file(model, tmp_path)
    np.testing.assert_array_equal(back.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_what_is_not_held_is_named_with_a_hint(tmp_path):
    choosing = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number"))
    )
    model = make_pipeline(choosing, linear()).fit(FRAME[["age"]].fillna(0), LABELS)
    with pytest.raises(ModelFileError, match=r"make_column_selector.* Use joblib or skops"):
        polymargin.save(model, tmp_path / "m.pmz")


def test_a_card_names_the_columns(tmp_path):
    polymargin.save(MODELS["ours"](), tmp_path / "m.pmz")
    card = inspect_model(tmp_path / "m.pmz")
    assert [name for name, _ in card.columns] == list(FRAME.columns)
    assert dict(card.columns)["age"] == "a number, 12 missing"
    polymargin.save(linear().fit(X, Y), tmp_path / "m.pmz")
    assert inspect_model(tmp_path / "m.pmz").columns is None


def forged(tmp_path, change):
    """A model file whose manifest somebody has changed, without its seal."""
    path = tmp_path / "m.pmz"
    polymargin.save(MODELS["by name"](), path)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(parts["manifest.json"])
    manifest.pop("seals", None)
    columns = manifest["model"]["params"]["steps"][0][1]
    change(columns)
    parts["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name, content in parts.items():
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return path


def encoder_of(columns):
    return columns["state"]["transformers_"][1]["$tuple"][1]["state"]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: encoder_of(c).update(_n_features_outs=[7]),
        lambda c: encoder_of(c).update(_infrequent_enabled=1),
        lambda c: encoder_of(c).update(categories_=[]),
        lambda c: encoder_of(c).update(_infrequent_indices=[None]),
        lambda c: c["state"].update(
            _transformer_to_input_indices={"$dict": [["n", [99]], ["c", [1]], ["t", [2]]]}
        ),
        lambda c: c["state"]["transformers_"][0].update({"$tuple": ["n", {"$object": "x"}, [0]]}),
        lambda c: c["state"].update(_run=1),
    ],
)
def test_forged_states_are_refused(tmp_path, change):
    with pytest.raises(ModelFileError):
        polymargin.load(forged(tmp_path, change))


def test_the_forging_itself_is_sound(tmp_path):
    model = MODELS["by name"]()
    back = polymargin.load(forged(tmp_path, lambda columns: None))
    assert isinstance(back[-1], LinearMulticlassSVC)
    np.testing.assert_array_equal(back.predict(FRAME), model.predict(FRAME))
