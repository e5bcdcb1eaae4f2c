"""What the projections accept, and what they say about what they do not."""

from __future__ import annotations

import doctest
import importlib
from functools import partial

import numpy as np
import pytest

import polymargin
from polymargin import projections
from polymargin.projections import (
    project_capped_simplex,
    project_l1_ball,
    project_simplex,
    project_top_k_cone,
    project_top_k_simplex,
    solve_weston_watkins,
)

FUNCTIONS = {
    **{f"simplex {m}": partial(project_simplex, method=m, random_state=0)
       for m in ("newton", "condat", "sort", "pivot", "bisection")},
    "l1 ball": project_l1_ball,
    "capped simplex": partial(project_capped_simplex, upper=0.7),
    "capped simplex, at most": partial(project_capped_simplex, upper=0.7, equality=False),
    "top-k cone": partial(project_top_k_cone, k=2),
    "top-k simplex": partial(project_top_k_simplex, k=2),
    **{f"weston-watkins {m}": partial(solve_weston_watkins, C=0.5, method=m)
       for m in ("newton", "walrus", "greedy")},
}  # fmt: skip
WITH_SIZE = {
    "z": (project_simplex, project_l1_ball, partial(project_capped_simplex, upper=np.inf)),
    "r": (partial(project_top_k_simplex, k=1),),
    "C": (solve_weston_watkins,),
}
SIZED = [(name, f) for name, functions in WITH_SIZE.items() for f in functions]

every_function = pytest.mark.parametrize("project", FUNCTIONS.values(), ids=FUNCTIONS)
every_size = pytest.mark.parametrize(("name", "project"), SIZED)


@every_function
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_result_has_the_shape_and_dtype_of_the_input_and_is_new(project, dtype):
    for shape in [(3,), (1, 3), (4, 3), (0, 3)]:
        v = np.random.default_rng(0).normal(size=shape).astype(dtype)
        kept = v.copy()
        p = project(v)
        assert p.shape == shape and p.dtype == dtype
        assert not np.shares_memory(p, v)
        np.testing.assert_array_equal(v, kept)


@every_function
def test_integers_lists_and_bools_become_doubles(project):
    expected = project(np.array([2.0, 0.0, 1.0]))
    for v in ([2, 0, 1], [2.0, 0, 1], np.array([2, 0, 1], dtype=np.int8), (2, 0, 1)):
        p = project(v)
        assert p.dtype == np.float64
        np.testing.assert_array_equal(p, expected)
    np.testing.assert_array_equal(project([True, False, True]), project([1.0, 0.0, 1.0]))


@every_function
def test_read_only_strided_and_byte_swapped_input(project):
    wide = np.random.default_rng(1).normal(size=(6, 30))
    wide.setflags(write=False)
    V = wide[::2, ::3]
    expected = project(V.copy())
    for same in (V, np.asfortranarray(V), V.astype(">f8"), V[::-1][::-1]):
        np.testing.assert_array_equal(project(same), expected)


@every_function
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_that_are_not_finite(project, bad, dtype):
    for n in (2, 9, 40):
        for at in (0, n // 2, n - 1):
            V = np.ones((3, n), dtype=dtype)
            V[1, at] = bad
            with pytest.raises(ValueError, match="Row 1 of v contains NaN, infinity"):
                project(V)


@every_function
def test_entries_too_large_to_be_added(project):
    with pytest.raises(ValueError, match="1e300"):
        project(np.array([1.0, 1e305]))


@every_function
@pytest.mark.parametrize(
    "v", [np.zeros((2, 2), complex), np.array(["a", "b"]), np.array([1, None]), np.zeros(2, "f2")]
)
def test_other_dtypes(project, v):
    with pytest.raises(TypeError, match="dtype"):
        project(v)


@every_function
@pytest.mark.parametrize("v", [1.0, np.zeros((2, 2, 2))])
def test_other_dimensions(project, v):
    with pytest.raises(ValueError, match="dimensions"):
        project(v)


@every_function
@pytest.mark.parametrize("v", [[], np.zeros((3, 0))])
def test_empty_rows(project, v):
    with pytest.raises(ValueError, match="empty"):
        project(v)


@every_size
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 1e305, [1.0, 0.0]])
def test_sizes_must_be_positive_and_finite(name, project, bad):
    with pytest.raises(ValueError, match=f"{name} must be"):
        project(np.ones((2, 3)), **{name: bad})


@every_size
def test_sizes_are_one_number_or_one_per_row(name, project):
    for bad in ([1.0, 1.0, 1.0], [[1.0], [1.0]]):
        with pytest.raises(ValueError, match=f"{name} has the shape"):
            project(np.ones((2, 3)), **{name: bad})
    for bad in ("1", None, 1j):
        with pytest.raises(TypeError, match=f"{name} must be a number"):
            project(np.ones((2, 3)), **{name: bad})
    both = project(np.ones((2, 3)), **{name: [1, 2]})
    np.testing.assert_array_equal(both[0], project(np.ones(3), **{name: 1}))
    np.testing.assert_array_equal(both[1], project(np.ones(3), **{name: [2.0]}))


@pytest.mark.parametrize("project", [project_top_k_cone, project_top_k_simplex])
def test_k_is_an_integer_between_one_and_the_number_of_entries(project):
    for bad in (0, -1, 4):
        with pytest.raises(ValueError, match="k must lie between 1 and the 3 entries"):
            project(np.ones(3), k=bad)
    for bad in (1.0, "1", None, True):
        with pytest.raises(TypeError, match="k must be an integer"):
            project(np.ones(3), k=bad)
    np.testing.assert_array_equal(project(np.ones(3), k=np.int64(3)), project(np.ones(3), k=3))


@pytest.mark.parametrize("project", [project_top_k_cone, project_top_k_simplex])
def test_bias_is_at_least_zero(project):
    for bad in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="bias must be at least 0"):
            project(np.ones(3), k=2, bias=bad)
    with pytest.raises(TypeError, match="bias must be a real number"):
        project(np.ones(3), k=2, bias="1")


@pytest.mark.parametrize("project", [project_simplex, partial(solve_weston_watkins, C=1.0)])
def test_methods_and_tolerances(project):
    with pytest.raises(ValueError, match="Unknown method 'quick'; choose one of newton"):
        project([1.0], method="quick")
    for bad in (-1e-3, 1.0, np.nan):
        with pytest.raises(ValueError, match="tol must lie in"):
            project([1.0], tol=bad)
    with pytest.raises(TypeError, match="tol must be a real number"):
        project([1.0], tol=None)


def test_upper_bounds():
    for bad in (-0.1, np.nan, [0.5, -1.0, 0.5]):
        with pytest.raises(ValueError, match="upper must be at least 0"):
            project_capped_simplex(np.ones(3), bad)
    for bad in ([1.0, 1.0], np.ones((2, 3))):
        with pytest.raises(ValueError, match="does not broadcast"):
            project_capped_simplex(np.ones(3), bad)
    for bad in ("1", None):
        with pytest.raises(TypeError, match="upper must be a number"):
            project_capped_simplex(np.ones(3), bad)


def test_bounds_that_leave_nothing_feasible():
    with pytest.raises(ValueError, match=r"Row 0 has no feasible point.*add up to 0.9"):
        project_capped_simplex(np.ones(3), 0.3)
    with pytest.raises(ValueError, match=r"Row 1 .*z=5"):
        project_capped_simplex(np.ones((3, 3)), 1.0, z=[1.0, 5.0, 1.0])
    with pytest.raises(ValueError, match=r"Row 2 .*equality=False"):
        project_capped_simplex(np.ones((3, 2)), [[1, 1], [1, 1], [0.25, 0.5]])
    p = project_capped_simplex(np.ones(3), 0.3, equality=False)
    np.testing.assert_array_equal(p, 0.3)


def test_random_state_of_the_pivots():
    v = np.random.default_rng(2).normal(size=100)
    for state in (3, np.random.RandomState(3), None):
        p = project_simplex(v, method="pivot", random_state=state)
        np.testing.assert_allclose(p, project_simplex(v), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        project_simplex(v, method="pivot", random_state="x")


@pytest.mark.parametrize("name", ["_simplex", "_top_k", "_weston_watkins"])
def test_the_examples_of_the_docstrings_run(name):
    module = importlib.import_module(f"polymargin.projections.{name}")
    results = doctest.testmod(module)
    assert results.attempted >= 3
    assert results.failed == 0


def test_the_module_is_public():
    assert polymargin.projections is projections
    assert set(projections.__all__) == {
        "project_capped_simplex",
        "project_l1_ball",
        "project_simplex",
        "project_top_k_cone",
        "project_top_k_simplex",
        "solve_weston_watkins",
    }
