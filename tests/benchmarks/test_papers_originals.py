"""The papers' own data are used where scikit-learn has them here, and never downloaded."""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than tiny data do

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks import datasets, originals
from benchmarks.papers import (
    blondel_figure1,
    blondel_table2,
    common,
    keerthi_figure5,
    keerthi_figures1_4,
    keerthi_figures2_3,
)
from benchmarks.papers.study import Study


@pytest.fixture
def stand_in(monkeypatch):
    """What `load` has: other data than the papers'."""
    X, y = datasets.generate_sparse(150, 40, 3, nonzeros=4, dtype=np.float64)
    data = datasets.Dataset("stand-in", X[:100], y[:100], X[100:], y[100:])
    monkeypatch.setattr(datasets, "load", lambda name, *args, **kwargs: data)


@pytest.fixture
def on_the_machine(stand_in, monkeypatch, tmp_path):
    """Small newsgroups and cover, as scikit-learn would give them."""
    monkeypatch.setenv("POLYMARGIN_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "PROJECT_ROOT", tmp_path / "a" / "project")
    X, y = datasets.generate_sparse(240, 60, 4, nonzeros=6, dtype=np.float64)
    asked = []

    def newsgroups(subset, normalize, download_if_missing):
        asked.append(download_if_missing)
        part = slice(0, 160) if subset == "train" else slice(160, 240)
        return SimpleNamespace(data=3.0 * X[part], target=y[part])

    def cover(download_if_missing):
        asked.append(download_if_missing)
        return SimpleNamespace(data=X.toarray(), target=y + 1)  # 1..k, as there

    monkeypatch.setattr(originals.fetchers, "fetch_20newsgroups_vectorized", newsgroups)
    monkeypatch.setattr(originals.fetchers, "fetch_covtype", cover)
    yield asked
    assert asked and not any(asked)  # nothing was to be downloaded


@pytest.fixture
def nowhere(stand_in, monkeypatch, tmp_path):
    """Neither files nor earlier downloads."""
    monkeypatch.setenv("POLYMARGIN_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "PROJECT_ROOT", tmp_path / "a" / "project")

    def absent(download_if_missing, **options):
        assert not download_if_missing
        raise OSError("Data not found and `download_if_missing` is False")

    monkeypatch.setattr(originals.fetchers, "fetch_20newsgroups_vectorized", absent)
    monkeypatch.setattr(originals.fetchers, "fetch_covtype", absent)


@pytest.mark.usefixtures("on_the_machine")
def test_all_documents_of_the_newsgroups_take_the_place_of_the_file():
    data = datasets.load_published("news20")
    assert data.name == "news20_18846"
    assert data.X_train.shape == (160, 60) and data.X_test.shape == (80, 60)
    np.testing.assert_allclose((data.X_train**2).sum(axis=1), 1.0)  # unit rows, as the file
    assert datasets.load_published("letter").name == "stand-in"
    assert datasets.is_here("covtype") and common.cover() == ("covtype",)


@pytest.mark.usefixtures("nowhere")
def test_without_them_the_stand_ins_are_used():
    assert datasets.load_published("news20").name == "stand-in"
    assert not datasets.is_here("covtype") and common.cover() == ()


def test_a_file_is_there_too(nowhere, tmp_path):
    (tmp_path / "covtype.npz").touch()
    assert datasets.is_here("covtype") and datasets.is_here("digits")


def result(module, folder):
    module.experiment(Study(module.NAME, True, folder))
    return json.loads((folder / f"{module.NAME}.json").read_text())


@pytest.mark.usefixtures("on_the_machine")
def test_blondels_experiments_use_the_newsgroups(tmp_path, monkeypatch):
    for module in (blondel_table2, blondel_figure1):
        monkeypatch.setattr(module, "DATA", ("news20",))
    found = result(blondel_table2, tmp_path)
    assert list(found["accuracy"]) == ["news20_18846"]
    text = (tmp_path / "blondel_table2.md").read_text()
    assert "# Table II, news20_18846" in text and "paper's News20 %" in text
    assert list(result(blondel_figure1, tmp_path)["summary"]) == ["news20_18846"]


@pytest.mark.usefixtures("on_the_machine")
def test_keerthis_figure5_uses_cover(tmp_path, monkeypatch):
    monkeypatch.setattr(keerthi_figure5, "DATA", ())
    monkeypatch.setattr(keerthi_figure5, "LIMITS", dict.fromkeys(keerthi_figure5.LIMITS, 0.1))
    used = []
    measure = keerthi_figure5.measure
    monkeypatch.setattr(
        keerthi_figure5,
        "measure",
        lambda data, *settings: used.append(data) or measure(data, *settings),
    )
    assert list(result(keerthi_figure5, tmp_path)["curves"]) == ["covtype"]
    assert {data.X_train.shape[1] for data in used} == {60}  # cover's, not the stand-in's 40


@pytest.mark.usefixtures("on_the_machine")
def test_keerthis_figures_1_and_4_use_cover(tmp_path, monkeypatch):
    monkeypatch.setattr(keerthi_figures1_4, "REFERENCE_LIMIT", 1.0)
    on_data = keerthi_figures1_4.on_data
    monkeypatch.setattr(
        keerthi_figures1_4,
        "on_data",
        lambda study, data, limit, reference: on_data(study, data, 0.1, reference),
    )
    found = result(keerthi_figures1_4, tmp_path)
    assert list(found["curves"]["crammer_singer"]) == ["stand-in", "covtype"]


@pytest.mark.usefixtures("on_the_machine")
def test_keerthis_figure_3_uses_cover(tmp_path, monkeypatch):
    pytest.importorskip("clarabel", reason="the 1-slack method needs Clarabel")
    monkeypatch.setattr(keerthi_figures2_3, "HAS_NUMBA", True)
    monkeypatch.setattr(keerthi_figures2_3, "PROBLEMS", ())
    monkeypatch.setattr(keerthi_figures2_3, "NOT_QUICK", ())
    monkeypatch.setattr(keerthi_figures2_3, "LIMITS", {True: 0.2})
    monkeypatch.setattr(keerthi_figures2_3, "EPOCHS", 1)
    assert list(result(keerthi_figures2_3, tmp_path)["problems"]) == ["covtype, C = 1"]
