"""The loops over examples behind shrinking, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymargin.core import core
from polymargin.data.rows import shuffled


def some_order(rng, n):
    return rng.permutation(n)[: rng.integers(1, n + 1)]


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_lists_are_numpys(n, seed):
    rng = np.random.default_rng(seed)
    among = some_order(rng, n)
    room = np.empty_like(among)
    due_at = rng.integers(0, 5, n).astype(np.int32)
    found = room[: core.list_due(among, due_at, 2, room)]
    np.testing.assert_array_equal(found, among[due_at[among] <= 2])
    share = rng.integers(0, 4, n).astype(float)  # ties with the bound, too
    found = room[: core.list_above(among, share, 2.0, room)]
    np.testing.assert_array_equal(found, among[share[among] > 2.0])
    assert core.mean_share(among, share) == pytest.approx(share[among].mean())


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-300, 0.3, 1e6]))
def test_intervals_follow_the_formula(n, seed, target):
    rng = np.random.default_rng(seed)
    order, now, longest = some_order(rng, n), 7, 16.0
    share = rng.choice([0.0, 1e-310, 1e-3, 0.1, 1.0, 50.0], n)
    before = rng.uniform(1, longest, n).astype(np.float32)
    interval, due = before.copy(), np.full(n, -1, np.int32)
    core.set_next_visits(order, share, target, longest, now, seed, interval, due)
    with np.errstate(divide="ignore", over="ignore"):
        factor = np.sqrt(target / share[order]) if target > 0 else np.full(len(order), 2.0)
    wait = np.clip(before[order] * np.clip(factor, 0.5, 2.0), 1.0, longest)
    np.testing.assert_allclose(interval[order], wait, rtol=1e-6)
    passes = due[order] - now
    assert (passes >= np.floor(wait)).all() and (passes <= np.floor(wait + 1)).all()
    asleep = np.setdiff1d(np.arange(n), order)
    assert (due[asleep] == -1).all() and (interval[asleep] == before[asleep]).all()


def test_those_who_wait_alike_do_not_wake_in_step():
    n = 10_000
    interval, due = np.full(n, 2.5, np.float32), np.zeros(n, np.int32)
    core.set_next_visits(np.arange(n), np.ones(n), 1.0, 16.0, 0, 1, interval, due)
    counts = np.bincount(due)
    assert counts.sum() == counts[2] + counts[3] == n
    assert abs(counts[2] - n / 2) < 4 * np.sqrt(n / 4)


@given(st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_a_shuffled_order_is_a_permutation(n, seed):
    order = np.random.default_rng(seed).permutation(3 * n + 1)[:n]
    found = shuffled(order, np.random.default_rng(seed))
    assert sorted(found) == sorted(order)
    np.testing.assert_array_equal(found, shuffled(order, np.random.default_rng(seed)))


def test_every_order_is_as_likely():
    rng, order, rounds = np.random.default_rng(0), np.arange(4), 24_000
    found = np.array([shuffled(order, rng) for _ in range(rounds)])
    counts = np.unique(found @ [64, 16, 4, 1], return_counts=True)[1]
    assert len(counts) == 24
    chi_squared = ((counts - rounds / 24) ** 2 / (rounds / 24)).sum()
    assert chi_squared < 60  # 23 degrees of freedom: one in 30,000 seeds is above


def test_orders_outside_the_data_are_refused():
    far, room, marks = np.array([0, 5]), np.empty(2, np.int64), np.zeros(5)
    due, interval = np.zeros(5, np.int32), np.ones(5, np.float32)
    calls = [
        lambda order: core.list_due(order, due, 0, room),
        lambda order: core.list_above(order, marks, 0.0, room),
        lambda order: core.mean_share(order, marks),
        lambda order: core.set_next_visits(order, marks, 1.0, 16.0, 0, 0, interval, due),
    ]
    for call in calls:
        for wrong in (far, -far):
            with pytest.raises(ValueError, match="outside the data"):
                call(wrong)
    with pytest.raises(ValueError, match="room"):
        core.list_due(np.arange(3), due, 0, room)
    with pytest.raises(ValueError, match="length"):
        core.shuffled(np.arange(3), 0, room)
    with pytest.raises(ValueError, match="nothing"):
        core.mean_share(np.empty(0, np.int64), marks)
