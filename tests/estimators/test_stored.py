"""Fits and predictions on data that are not in memory: as if they were."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polymargin import LOSSES, Checkpoint, CheckpointError, DualSolver, LinearMulticlassSVC
from polymargin.data import BlockRows
from polymargin.files import StoredMatrix
from polymargin.io import BlockSource, DataFileError, Dataset, open_directory, write_directory
from polymargin.solvers.shrinking import AdaptiveSchedule
from tests.reference import objective

LIMIT = "250KB"  # of the 600 kB and more that the data take


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n, d, K = 2000, 80, 5
    X = sparse.csr_array(sparse.random(n, d, 0.3, format="csr", rng=rng))
    scores = X @ rng.normal(size=(d, K)) + 0.3 * rng.normal(size=(n, K))
    y = np.array(["ant", "bee", "cat", "dog", "elk"])[scores.argmax(axis=1)]
    order = np.argsort(y, kind="stable")
    return X[order], y[order], rng.random(n) + 0.5


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    X, y, _ = data
    return write_directory(Dataset(X=X, y=y), tmp_path_factory.mktemp("stored") / "data")


def blocks_of(*arrays, rows=300):
    n = arrays[0].shape[0]
    return [tuple(a[i : i + rows] for a in arrays) for i in range(0, n, rows)]


def spec_of(model, X, y, weight):
    codes = np.searchsorted(model.classes_, y)
    c = model.C * np.asarray(weight)
    scaling, k = 1.0 * model.fit_intercept, len(model.classes_)
    return objective.Spec(X, codes, c, model.loss, model.top_k, scaling, k, model.smoothing)


@pytest.mark.parametrize(
    ("loss", "smoothing"), [*((loss, 0.0) for loss in LOSSES), ("top_k_beta", 0.3)]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_certificates_are_those_of_numpy(data, loss, smoothing, fit_intercept):
    """P and D of a fit in blocks, with weights, recomputed from the model and its dual."""
    X, y, weight = data
    top_k = 2 if "top_k" in loss else None
    model = LinearMulticlassSVC(
        loss=loss, top_k=top_k, smoothing=smoothing, fit_intercept=fit_intercept, random_state=0
    )
    model.set_params(store_dual=True)
    model.set_params(memory_limit=LIMIT, class_weight={"bee": 2.0})
    model.fit(BlockSource(blocks_of(X, y, weight)))
    assert model.dual_gap_ <= model.tol
    spec = spec_of(model, X, y, weight * np.where(y == "bee", 2.0, 1.0))
    P = objective.primal(spec, model.coef_, model.intercept_)
    assert pytest.approx(model.objective_, rel=1e-9) == P
    D = objective.dual(spec, model.dual_coef_.T)
    assert pytest.approx(model.dual_objective_, rel=1e-9) == D
    assert objective.dual_infeasibility(spec, model.dual_coef_.T) <= 1e-12
    whole = clone(model).set_params(memory_limit=None).fit(BlockSource(blocks_of(X, y, weight)))
    assert abs(whole.objective_ - model.objective_) <= 2e-3 * whole.objective_


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_model_is_that_of_a_fit_in_memory(data, tmp_path, dense, dtype):
    X, y, _ = data
    X = (X.toarray() if dense else X).astype(dtype)
    folder = write_directory(Dataset(X=X, y=y), tmp_path / "data")
    model = LinearMulticlassSVC(tol=1e-4, random_state=0).fit(X, y)
    limit = "900KB" if dense else LIMIT
    ours = LinearMulticlassSVC(tol=1e-4, random_state=0, memory_limit=limit).fit(folder)
    assert ours.coef_.dtype == dtype
    assert ours.dual_gap_ <= 1e-4
    assert ours.objective_ == pytest.approx(model.objective_, rel=1e-4)
    assert np.mean(ours.predict(X) == model.predict(X)) > 0.995
    assert ours.n_features_in_ == X.shape[1]


def test_paths_opened_directories_and_sources_are_one(data, folder):
    X, y, _ = data
    model = LinearMulticlassSVC(random_state=0, memory_limit=LIMIT)
    one, two = clone(model).fit(str(folder)), clone(model).fit(open_directory(folder))
    three = clone(model).fit(BlockSource(lambda: iter(blocks_of(X, y))))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.coef_, three.coef_)


@pytest.mark.parametrize("limit", [None, "1GB"])
def test_what_fits_the_memory_is_fitted_there(data, folder, limit):
    X, y, _ = data
    inside = LinearMulticlassSVC(random_state=0).fit(X, y)
    model = LinearMulticlassSVC(random_state=0, memory_limit=limit).fit(folder)
    np.testing.assert_array_equal(model.coef_, inside.coef_)


def test_predictions_stream(data, folder):
    X, y, weight = data
    model = LinearMulticlassSVC(random_state=0).fit(X, y)
    source = BlockSource(blocks_of(X, y, weight))
    for stored in (folder, open_directory(folder), source):
        np.testing.assert_array_equal(model.predict(stored), model.predict(X))
        np.testing.assert_allclose(model.decision_function(stored), model.decision_function(X))
        np.testing.assert_array_equal(model.predict_top_k(stored, 2), model.predict_top_k(X, 2))
    assert model.score(folder) == pytest.approx(model.score(X, y))
    assert model.score(source) == pytest.approx(model.score(X, y, weight))


def test_the_same_seed_gives_the_same_bits(folder):
    models = [LinearMulticlassSVC(random_state=3, memory_limit=LIMIT).fit(folder) for _ in range(2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_warm_starts_go_on(folder):
    cold = warm = 0
    for seed in range(3):  # single seeds differ by the random numbers that follow
        model = LinearMulticlassSVC(random_state=seed, memory_limit=LIMIT, warm_start=True)
        cold += model.fit(folder).n_iter_
        warm += model.fit(folder).n_iter_
        assert model.dual_gap_ <= model.tol
    assert warm < cold / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_goes_on_from_a_checkpoint_to_the_last_bit(data, tmp_path, dtype):
    X, y, _ = data
    folder = write_directory(Dataset(X=X.astype(dtype), y=y), tmp_path / "data")
    whole = LinearMulticlassSVC(tol=1e-4, random_state=0, memory_limit=LIMIT).fit(folder)
    place = Checkpoint(tmp_path / "state", every=None, passes=1)
    model = clone(whole).set_params(checkpoint=place, max_iter=whole.n_iter_ // 2)
    with pytest.warns(match="max_iter"):
        model.fit(folder)
    model.set_params(max_iter=1000).fit(folder)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert model.n_iter_ == whole.n_iter_


def test_ctrl_c_leaves_the_best_model(folder):
    class Stop(DualSolver):
        def solve(self, problem, **settings):
            def stop(record):
                if record["pass"] == 5:
                    raise KeyboardInterrupt

            return super().solve(problem, **{**settings, "progress": stop})

    model = LinearMulticlassSVC(random_state=0, memory_limit=LIMIT, solver=Stop())
    with pytest.raises(KeyboardInterrupt):
        model.fit(folder)
    assert 0 < model.dual_gap_ < 1
    assert model.n_iter_ == 5


def test_labels_come_with_the_data(data, folder):
    X, y, _ = data
    with pytest.raises(ValueError, match="y must be left out"):
        LinearMulticlassSVC().fit(folder, y)
    with pytest.raises(ValueError, match="y"):
        LinearMulticlassSVC().fit(X)


@pytest.mark.parametrize("limit", ["2 apples", "GB", "1.2.3MB", "0MB"])
def test_sizes_that_are_none_are_refused(data, folder, limit):
    X, y, _ = data
    for given in ((folder,), (X, y)):  # also where nothing is read from disk
        with pytest.raises(ValueError, match='memory_limit must be a size such as "2GB"'):
            LinearMulticlassSVC(memory_limit=limit).fit(*given)


def test_too_little_memory_says_what_is_needed(folder):
    with pytest.raises(ValueError, match=r"2,000 examples need 0\.\d+ MB .* Give at least"):
        LinearMulticlassSVC(memory_limit="20KB").fit(folder)


def test_bad_blocks_are_named(data):
    X, y, _ = data
    model = LinearMulticlassSVC(memory_limit=LIMIT)
    blocks = blocks_of(X, y, rows=150)

    def with_tenth(*block):
        return BlockSource([*blocks[:9], block, *blocks[10:]])

    bad = blocks[9][0].copy()
    bad.data[5] = np.nan
    labels = blocks[9][1]
    for block, reason in [
        ((bad, labels), "NaN or infinite"),
        ((blocks[9][0][:, :40], labels), "40 columns, where the first block is .* 80 columns"),
        ((blocks[9][0].astype(np.float32), labels), "float32 .* where the first block is"),
        ((blocks[9][0].toarray(), labels), "dense"),
        ((blocks[9][0], labels[:3]), "another length"),
        ((blocks[9][0], np.arange(len(labels))), "y is int64"),
        ((blocks[9][0], labels, np.ones(len(labels))), "some blocks have weights"),
        (labels, "expected"),
    ]:
        with pytest.raises(DataFileError, match=f"block 10: .*{reason}"):
            model.fit(with_tenth(*block) if isinstance(block, tuple) else with_tenth(labels))
    with pytest.raises(DataFileError, match="no examples"):
        model.fit(BlockSource([]))


def test_iterators_are_refused(data):
    X, y, _ = data
    with pytest.raises(TypeError, match="iterated more than once, which a list_iterator cannot"):
        BlockSource(iter(blocks_of(X, y)))


def test_paths_that_are_no_directory_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        LinearMulticlassSVC().fit(tmp_path / "nothing")
    with pytest.raises(DataFileError, match="not a data directory"):
        LinearMulticlassSVC().fit(tmp_path)


def test_costs_between_classes_reach_blocks_and_checkpoints(data, folder, tmp_path):
    X, y, _ = data
    names = np.unique(y)
    costs = np.random.default_rng(1).uniform(0.2, 3.0, (5, 5)) * (1 - np.eye(5))
    given = {"cost_matrix": costs, "tol": 1e-6, "random_state": 0}
    stored = LinearMulticlassSVC(memory_limit=LIMIT, store_dual=True, **given).fit(folder)
    held = LinearMulticlassSVC(**given).fit(X, y)
    assert stored.objective_ == pytest.approx(held.objective_, rel=1e-5)
    codes = np.searchsorted(names, y)
    spec = objective.Spec(
        X.toarray(), codes, np.ones(len(y)), "crammer_singer", None, 1.0, 5, margins=costs
    )
    found = objective.primal(spec, stored.coef_, stored.intercept_)
    assert found == pytest.approx(stored.objective_, rel=1e-9)
    assert objective.dual(spec, stored.dual_coef_.T) == pytest.approx(
        stored.dual_objective_, rel=1e-9
    )
    place = Checkpoint(tmp_path / "run", passes=1)
    halves = LinearMulticlassSVC(memory_limit=LIMIT, checkpoint=place, max_iter=3, **given)
    with pytest.warns(ConvergenceWarning):
        halves.fit(folder)
    with pytest.raises(CheckpointError, match="cost_matrix"):
        clone(halves).set_params(cost_matrix=2 * costs).fit(folder)
    resumed = halves.set_params(max_iter=1000).fit(folder)
    np.testing.assert_array_equal(resumed.coef_, stored.coef_)


def test_what_is_in_memory_is_visited_again_and_so_read_less_often(tmp_path, monkeypatch):
    """The certificate does not depend on it; the number of reads does."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=3000)
    words = np.where(rng.random((3000, 15)) < 0.3, 250 * y[:, None], 0) + (
        rng.integers(250, size=(3000, 15)) * np.where(rng.random((3000, 15)) < 0.3, 1, 8)
    )
    X = sparse.csr_array((np.full(45000, 15**-0.5), words.ravel(), np.arange(3001) * 15))
    X.sum_duplicates()
    folder = write_directory(Dataset(X=X, y=y), tmp_path / "data")
    read = {"again": 0, "once": 0}

    class Recording(DualSolver):
        def solve(self, problem, **settings):
            found = super().solve(problem, **settings)
            read[name] += problem.rows.bytes_read
            return found

    for name in read:
        if name == "once":
            monkeypatch.setattr(AdaptiveSchedule, "again", lambda self, part: part[:0])
        for seed in range(3):
            model = LinearMulticlassSVC(C=10.0, random_state=seed, memory_limit="500KB")
            model.set_params(solver=Recording())
            assert model.fit(folder).dual_gap_ <= model.tol
    assert read["again"] < 0.95 * read["once"]


def test_no_pass_reads_more_than_the_file(data, folder):
    X, _, _ = data
    stored = StoredMatrix(folder, X.shape, dense=False)
    rows = BlockRows(stored, 250e3)
    assert (
        rows.bytes_read
        == sum(getattr(X, part).nbytes for part in ("data", "indices", "indptr"))
        - X.indptr.itemsize * 1
    )  # where the last row ends is nobody's
