"""The estimator inside of scikit-learn and beside other libraries' containers."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from polymargin import DualSolver, LinearMulticlassSVC
from tests.estimators import (
    LOSS_PARAMS,
    loss_id,
    make_problem,
    make_sparse_problem,
    needs_callbacks,
)

by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)


# --- meta-estimators -----------------------------------------------------------------------------


def test_grid_search_over_losses_and_nested_solver_parameters():
    X, y = make_problem()
    grid = {
        "loss": ["crammer_singer", "weston_watkins", "one_vs_rest"],
        "C": [0.1, 1.0],
        "solver__shrinking": [True, False],
    }
    search = GridSearchCV(LinearMulticlassSVC(solver=DualSolver(), random_state=0), grid, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.5
    assert len(search.cv_results_["params"]) == 12
    assert search.best_estimator_.solver.shrinking == search.best_params_["solver__shrinking"]


def test_cross_validation_in_worker_processes():
    X, y = make_sparse_problem()
    clf = LinearMulticlassSVC(random_state=0)
    alone = cross_val_score(clf, X, y, cv=2)
    np.testing.assert_array_equal(cross_val_score(clf, X, y, cv=2, n_jobs=2), alone)


@pytest.mark.parametrize("scaler", [StandardScaler, MaxAbsScaler])
def test_pipeline(scaler):
    X, y = make_problem()
    X[:, 0] *= 1000
    pipeline = make_pipeline(scaler(), LinearMulticlassSVC(random_state=0))
    pipeline.set_params(linearmulticlasssvc__C=0.5).fit(X, y)
    assert pipeline[-1].C == 0.5
    assert pipeline.score(X, y) > 0.5


@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibrated_probabilities(n_classes):
    X, y = make_problem(n_classes=n_classes)
    calibrated = CalibratedClassifierCV(LinearMulticlassSVC(random_state=0), cv=3).fit(X, y)
    probabilities = calibrated.predict_proba(X)
    assert probabilities.shape == (len(y), n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.5


# --- cloning and pickling ------------------------------------------------------------------------


def test_clone_copies_nested_parameters():
    original = LinearMulticlassSVC(loss="weston_watkins", C=0.3, solver=DualSolver(shrinking=False))
    copy = clone(original)
    assert copy.solver is not original.solver
    assert repr(copy.get_params()) == repr(original.get_params())
    copy.set_params(solver__shrinking=True)
    assert original.solver.shrinking is False and copy.solver.shrinking is True


@by_loss
@pytest.mark.parametrize("warm_start", [False, True])
def test_pickled_models_predict_the_same_and_can_go_on(params, warm_start):
    X, y = make_problem()
    clf = LinearMulticlassSVC(
        **params, warm_start=warm_start, store_dual=True, solver=DualSolver(), random_state=0
    ).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(copy.dual_coef_.toarray(), clf.dual_coef_.toarray())
    np.testing.assert_array_equal(copy.fit(X, y).coef_, clf.fit(X, y).coef_)
    assert copy.n_iter_ == clf.n_iter_


# --- containers ----------------------------------------------------------------------------------


def fitted_scores(X, y, X_test=None) -> np.ndarray:
    """Fit with a fixed seed and give the scores."""
    clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    return clf.decision_function(X if X_test is None else X_test)


def test_pandas_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = make_problem()
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    labels = pandas.Series(y).map({0: "a", 1: "b", 2: "c", 3: "d"})
    for target in (labels, labels.astype("category"), labels.astype(object)):
        clf = LinearMulticlassSVC(random_state=0).fit(frame, target)
        np.testing.assert_array_equal(clf.feature_names_in_, frame.columns)
        np.testing.assert_array_equal(clf.classes_, ["a", "b", "c", "d"])
        np.testing.assert_array_equal(clf.decision_function(frame), fitted_scores(X, y))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"f0": "other"}))


def test_polars_frames():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = make_problem()
    frame = polars.DataFrame(X, schema=[f"f{j}" for j in range(X.shape[1])])
    clf = LinearMulticlassSVC(random_state=0).fit(frame, polars.Series(y))
    np.testing.assert_array_equal(clf.feature_names_in_, frame.columns)
    np.testing.assert_array_equal(clf.decision_function(frame), fitted_scores(X, y))


def test_lists():
    X, y = make_problem()
    np.testing.assert_array_equal(fitted_scores(X.tolist(), y.tolist(), X), fitted_scores(X, y))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_containers(layout, kind):
    X, y = make_sparse_problem()
    converted = getattr(sparse, f"{layout}_{kind}")(X)
    np.testing.assert_array_equal(fitted_scores(converted, y, X), fitted_scores(X, y))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_index_types_give_the_same_model(kind, dtype):
    X, y = make_sparse_problem()
    X = kind(X.astype(dtype))
    expected = fitted_scores(X, y)
    for indices, indptr in [
        (np.int32, np.int32),
        (np.int64, np.int64),
        (np.int32, np.int64),
        (np.uint16, np.int32),
    ]:
        X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
        np.testing.assert_array_equal(fitted_scores(X, y, kind(X.copy())), expected)


def test_dense_layouts_give_the_same_model():
    X, y = make_problem()
    expected = fitted_scores(X, y)
    wide = np.zeros((2 * len(y), 3 * X.shape[1]))
    wide[::2, ::3] = X
    for same in (np.asfortranarray(X), wide[::2, ::3], X.astype(">f8"), np.array(X, order="C")):
        np.testing.assert_array_equal(fitted_scores(same, y, X), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_memory_mapped_input(tmp_path, dtype):
    X, y = make_problem()
    X = X.astype(dtype)
    expected = fitted_scores(X, y)
    joblib.dump((X, y, sparse.csr_array(X)), tmp_path / "data")
    mapped, mapped_y, mapped_csr = joblib.load(tmp_path / "data", mmap_mode="r")
    assert isinstance(mapped, np.memmap) and not mapped.flags.writeable
    np.testing.assert_array_equal(fitted_scores(mapped, mapped_y), expected)
    assert not mapped_csr.data.flags.writeable
    on_csr = fitted_scores(mapped_csr, mapped_y)
    np.testing.assert_array_equal(on_csr, fitted_scores(sparse.csr_array(X), y))


# --- callbacks -----------------------------------------------------------------------------------


class Recorder:
    """A callback that notes the hooks of the passes, and stops after some."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.hooks = []
        self.data = []

    def on_fit_task_begin(self, estimator, context):
        self.hooks.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.hooks.append(("end", context.task_name, context.task_id))
        self.data.append((X, y, metadata))
        return self.stop_after is not None and context.task_id + 1 == self.stop_after

    def teardown(self, estimator, context):
        self.hooks.append(("teardown", context.task_name, context.task_id))


@needs_callbacks
def test_callbacks_see_every_pass():
    X, y = make_problem()
    recorder = Recorder()
    clf = LinearMulticlassSVC(random_state=0).set_callbacks(recorder)
    clf.fit(X, y, sample_weight=np.ones(len(y)))
    passes = [(hook, "pass", t) for t in range(clf.n_iter_) for hook in ("begin", "end")]
    whole = [("begin", "fit", 0), *passes, ("end", "fit", 0), ("teardown", "fit", 0)]
    assert recorder.hooks == whole
    for X_seen, y_seen, metadata in recorder.data:
        assert X_seen.shape == X.shape and y_seen.shape == y.shape
        np.testing.assert_array_equal(metadata["sample_weight"], 1.0)


@needs_callbacks
def test_callbacks_do_not_change_the_model():
    X, y = make_problem()
    watched = LinearMulticlassSVC(random_state=0).set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(watched.decision_function(X), fitted_scores(X, y))


@needs_callbacks
def test_a_callback_can_stop_the_fit(recwarn):
    X, y = make_problem()
    clf = LinearMulticlassSVC(tol=1e-12, C=10.0).set_callbacks(Recorder(stop_after=3)).fit(X, y)
    assert clf.n_iter_ == 3
    assert np.isfinite(clf.dual_gap_)
    assert not recwarn.list


@needs_callbacks
def test_scoring_monitor_logs_the_fit():
    from sklearn.callback import ScoringMonitor

    X, y = make_problem()
    monitor = ScoringMonitor(scoring="accuracy")
    clf = LinearMulticlassSVC(random_state=0).set_callbacks(monitor).fit(X, y)
    rows = monitor.get_logs(select="most_recent").data
    assert rows[0]["accuracy"] == clf.score(X, y)


@needs_callbacks
@pytest.mark.parametrize("nested", [False, True])
def test_progress_bar_runs(nested, capsys):
    from sklearn.callback import ProgressBar

    X, y = make_problem()
    clf = LinearMulticlassSVC(random_state=0)
    model = GridSearchCV(clf, {"C": [0.1, 1.0]}, cv=2) if nested else clf
    model.set_callbacks(ProgressBar()).fit(X, y)
    assert "LinearMulticlassSVC" in capsys.readouterr().out
