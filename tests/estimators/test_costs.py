"""`cost_matrix` of the estimators: its forms, its refusals, and where it must arrive."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import polymargin
from polymargin import (
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    StreamSolver,
    regularization_path,
)
from polymargin.costs import costs_for, from_confusion, from_taxonomy, mean_cost, without_types
from tests.estimators import make_problem
from tests.reference.objective import Spec, dual, primal

NAMES = np.array(["ant", "bee", "cat"])
COSTS = np.array([[0.0, 3.0, 0.5], [1.0, 0.0, 2.0], [0.2, 1.5, 0.0]])
TIGHT = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    X, y = make_problem(60, 4, 3)
    return X, NAMES[y], y


def pairs(costs=COSTS, names=NAMES):
    return {
        (str(a), str(b)): costs[i, j]
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i != j
    }


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
def test_the_certificate_is_that_of_the_costs(data, loss):
    X, labels, y = data
    clf = LinearMulticlassSVC(loss=loss, cost_matrix=COSTS, store_dual=True, **TIGHT)
    clf.fit(X, labels)
    spec = Spec(X, y, np.ones(len(y)), loss, None, 1.0, 3, margins=COSTS)
    assert primal(spec, clf.coef_, clf.intercept_) == pytest.approx(clf.objective_, rel=1e-9)
    assert dual(spec, clf.dual_coef_.T) == pytest.approx(clf.dual_objective_, rel=1e-9)
    assert clf.dual_gap_ <= 1e-9


def test_all_forms_give_the_same_bits(data):
    pandas = pytest.importorskip("pandas")
    X, labels, _ = data
    order = [2, 0, 1]
    frame = pandas.DataFrame(COSTS[np.ix_(order, order)], index=NAMES[order], columns=NAMES[order])
    fits = [
        LinearMulticlassSVC(cost_matrix=given, random_state=0).fit(X, labels)
        for given in (COSTS, COSTS.tolist(), pairs(), frame)
    ]
    for other in fits[1:]:
        assert np.array_equal(other.coef_, fits[0].coef_)


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, KernelMulticlassSVC, LaRankClassifier])
def test_costs_of_one_are_no_costs(data, kind):
    X, labels, _ = data
    plain = kind(random_state=0).fit(X, labels)
    ones = kind(random_state=0, cost_matrix=1.0 - np.eye(3)).fit(X, labels)
    assert np.array_equal(plain.decision_function(X), ones.decision_function(X))
    nearly = kind(random_state=0, cost_matrix=(1.0 - np.eye(3)) * (1 + 1e-12)).fit(X, labels)
    assert nearly.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-2)


def test_two_classes_with_unequal_costs(data):
    X, _, y = data
    few = y < 2
    dear = LinearMulticlassSVC(cost_matrix=[[0, 5], [0.2, 0]], C=0.1, **TIGHT).fit(X[few], y[few])
    cheap = LinearMulticlassSVC(cost_matrix=[[0, 0.2], [5, 0]], C=0.1, **TIGHT).fit(X[few], y[few])
    assert dear.decision_function(X).mean() < cheap.decision_function(X).mean()


def test_larank_approaches_the_kernel_machine(data):
    X, labels, _ = data
    kernel = {"kernel": "rbf", "gamma": 0.3, "cost_matrix": COSTS, "random_state": 0}
    best = KernelMulticlassSVC(tol=1e-8, **kernel).fit(X, labels).dual_objective_
    found = LaRankClassifier(tol=1e-5, **kernel).fit(X, labels)
    assert found.dual_objective_ == pytest.approx(best, rel=1e-4)
    assert found.objective_ == pytest.approx(best, rel=1e-4)
    copy = pickle.loads(pickle.dumps(found))
    assert copy._model.machine.dual == pytest.approx(found.dual_objective_, rel=1e-12)


def test_larank_streams_keep_their_costs(data):
    X, labels, _ = data
    clf = LaRankClassifier(cost_matrix=pairs(), random_state=0, gamma=0.3)
    order = np.argsort(labels == "ant", kind="stable")  # "ant" appears last
    for part in np.array_split(order, 4):
        clf.partial_fit(X[part], labels[part])
    machine, known = clf.learned()
    assert np.array_equal(machine.costs, costs_for(pairs(), known))
    with pytest.raises(ValueError, match="cost_matrix must not change"):
        clf.set_params(cost_matrix=None).partial_fit(X, labels)


def test_streams_of_linear_models(data):
    X, labels, _ = data
    stream = StreamSolver(reservoir=100, revisits=20)
    clf = LinearMulticlassSVC(cost_matrix=pairs(), stream=stream, random_state=0)
    late = np.argsort(labels == "ant", kind="stable")
    for part in np.array_split(late, 5):
        clf.partial_fit(X[part], labels[part])
    again = LinearMulticlassSVC(cost_matrix=COSTS, stream=stream, random_state=0)
    with pytest.raises(ValueError, match="3 rows and columns"):
        again.partial_fit(X[late[:2]], labels[late[:2]])
    again.partial_fit(X[late], labels[late], classes=NAMES)
    assert np.array_equal(pickle.loads(pickle.dumps(clf)).coef_, clf.coef_)
    plain = LinearMulticlassSVC(stream=stream, random_state=0).partial_fit(X[late], labels[late])
    assert not np.allclose(plain.coef_, clf.coef_)


def test_searches_and_paths_know_the_costs(data):
    X, labels, _ = data
    given = {"cost_matrix": COSTS, "random_state": 0}
    one = LinearMulticlassSVC(C=0.1, **given).fit(X, labels)
    path = regularization_path(X, labels, [0.1], **given)
    assert path.objectives[0] == pytest.approx(one.objective_, rel=1e-3)
    for kind in (LinearMulticlassSVCCV, KernelMulticlassSVCCV):
        found = kind(Cs=[0.1], cv=3, **given).fit(X, labels)
        plain = kind(Cs=[0.1], cv=3, random_state=0).fit(X, labels)
        assert abs(found.objective_ - plain.objective_) > 1e-2


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, KernelMulticlassSVC, LaRankClassifier])
def test_model_files_hold_the_costs(data, kind, tmp_path):
    X, labels, _ = data
    clf = kind(cost_matrix=pairs(), random_state=0).fit(X, labels)
    polymargin.save(clf, tmp_path / "model.pmz")
    back = polymargin.load(tmp_path / "model.pmz")
    assert np.array_equal(back.cost_matrix, COSTS)
    assert np.array_equal(back.decision_function(X), clf.decision_function(X))


def test_clones(data):
    clf = clone(LinearMulticlassSVC(cost_matrix=COSTS))
    assert np.array_equal(clf.cost_matrix, COSTS)
    assert "cost_matrix" in clf.get_params()


@pytest.mark.parametrize("loss", ["one_vs_rest", "one_vs_rest_squared", "softmax"])
@pytest.mark.parametrize("costs", [COSTS, 1.0 - np.eye(3)], ids=["costs", "ones"])
def test_losses_without_margins_refuse(data, loss, costs):
    X, labels, _ = data
    clf = LinearMulticlassSVC(loss=loss, cost_matrix=costs)
    for train in (clf.fit, clf.partial_fit, LinearMulticlassSVCCV(**clf_params(clf)).fit):
        with pytest.raises(ValueError, match="cannot take costs between classes"):
            train(X, labels)


def clf_params(clf):
    return {"loss": clf.loss, "cost_matrix": clf.cost_matrix}


@pytest.mark.parametrize("kind", [LinearMulticlassSVCCV, KernelMulticlassSVCCV])
def test_a_search_minimises_the_mean_cost(data, kind):
    X, labels, _ = data
    given = {"Cs": [0.01, 1.0], "cv": 3, "random_state": 0, "cost_matrix": pairs()}
    found = kind(**given).fit(X, labels)
    named = kind(scoring="neg_mean_cost", **given).fit(X, labels)
    np.testing.assert_array_equal(found.scores_, named.scores_)
    assert (found.scores_ <= 0).all()
    cost = mean_cost(labels, found.predict(X), COSTS, NAMES)
    assert found.score(X, labels) == pytest.approx(-cost)
    weight = np.arange(len(X)) / len(X)
    weighted = np.average(
        [mean_cost([a], [b], COSTS, NAMES) for a, b in zip(labels, found.predict(X), strict=True)],
        weights=weight,
    )
    assert found.score(X, labels, weight) == pytest.approx(-weighted)
    right = kind(scoring="accuracy", **given).fit(X, labels)
    assert (right.scores_ > 0).all()
    with pytest.raises(ValueError, match="needs costs"):
        kind(scoring="neg_mean_cost").fit(X, labels)


def test_a_stream_goes_on_after_a_model_file(data, tmp_path):
    X, labels, _ = data
    early = labels != "cat"
    for kind in (LinearMulticlassSVC, LaRankClassifier):
        clf = kind(cost_matrix=pairs(), random_state=0)
        clf.partial_fit(X[early], labels[early])
        polymargin.save(clf, tmp_path / "model.pmz")
        back = polymargin.load(tmp_path / "model.pmz")
        back.partial_fit(X, labels)
        assert back.classes_.tolist() == NAMES.tolist()


def test_mean_costs():
    assert mean_cost(["ant", "bee"], ["bee", "bee"], COSTS, NAMES) == 1.5
    assert mean_cost(["ant", "bee"], ["bee", "bee"], pairs()) == 1.5
    with pytest.raises(ValueError, match="does not know: 'cow'"):
        mean_cost(["cow"], ["bee"], COSTS, NAMES)
    with pytest.raises(ValueError, match="one length"):
        mean_cost(["bee"], [], COSTS, NAMES)


def changed(value, at=(0, 1)):
    costs = COSTS.copy()
    costs[at] = value
    return costs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (changed(-1.0), "'bee' where 'ant' is true is negative"),
        (changed(np.nan), "not a finite number"),
        (changed(np.inf), "not a finite number"),
        (changed(1.0, (1, 1)), "on its diagonal, for 'bee'"),
        (COSTS[:2], "must be square"),
        (COSTS[:2, :2], "2 rows and columns, but there are 3 classes"),
        ([["a", "b"], ["c", "d"]], "must be numbers"),
        ({("ant", "bee"): 1.0}, "does not know: 'cat'"),
        ({**pairs(), ("ant", "bee"): "x"}, "must be a number"),
        ({k: v for k, v in pairs().items() if k != ("ant", "bee")}, "lacks the cost of"),
        ({"ant": 1.0}, "pairs"),
    ],
)
def test_bad_costs_say_what_is_wrong(data, given, message):
    X, labels, _ = data
    with pytest.raises(ValueError, match=message):
        LinearMulticlassSVC(cost_matrix=given).fit(X, labels)


def test_taxonomies():
    parents = {"cat": "animal", "dog": "animal", "car": "machine", "animal": "thing"}
    costs = from_taxonomy({**parents, "machine": "thing"}, normalize=False)
    assert costs["cat", "dog"] == 1
    assert costs["cat", "car"] == 2
    assert np.mean(list(from_taxonomy(parents).values())) == pytest.approx(1)
    with pytest.raises(ValueError, match="not a tree"):
        from_taxonomy({"a": "b", "b": "a", "c": "a", "d": "b"})
    with pytest.raises(ValueError, match="does not know 'cow'"):
        from_taxonomy(parents, ["cat", "cow"])


def test_confusions():
    counts = np.array([[8, 4, 0], [0, 9, 3], [1, 1, 9]])
    costs = from_confusion(counts)
    assert costs[0, 1] < costs[0, 2]
    assert not np.diag(costs).any()
    assert costs.sum() / 6 == pytest.approx(1)
    assert from_confusion(counts, NAMES)["ant", "bee"] == costs[0, 1]
    with pytest.raises(ValueError, match="counts"):
        from_confusion(-counts)


def test_bad_frames_say_what_is_wrong(data):
    pandas = pytest.importorskip("pandas")
    X, labels, _ = data
    frame = pandas.DataFrame(COSTS, index=NAMES, columns=NAMES)
    for given, message in (
        (frame.drop("ant"), "the index of cost_matrix does not know: 'ant'"),
        (frame.drop(columns="bee"), "the columns of cost_matrix does not know: 'bee'"),
        (frame.rename(index={"ant": "bee"}), "a label twice in its index"),
        (frame.replace(3.0, np.nan), "not a finite number"),
        (frame.astype(object).replace(3.0, "much"), "must be numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearMulticlassSVC(cost_matrix=given).fit(X, labels)
    more = pandas.DataFrame(np.pad(COSTS, (0, 1)), index=[*NAMES, "dog"], columns=[*NAMES, "dog"])
    assert set(without_types(more, NAMES)) >= {("ant", "dog"), ("ant", "bee")}
    np.testing.assert_array_equal(without_types(frame, NAMES), COSTS)


def test_smoothing_below_zero_is_refused(data):
    X, labels, _ = data
    with pytest.raises(ValueError, match="'smoothing' parameter"):
        LinearMulticlassSVC(smoothing=-0.1).fit(X, labels)
