"""What of the gap a certificate is expected to find."""

from __future__ import annotations

import math

import pytest

from polymargin.solvers.checkpoint import CheckpointError
from polymargin.solvers.engines.base import Seen
from polymargin.solvers.forecast import FIRST_GUESS, Forecast


def after(gaps, kind="full", visited=10):
    """A forecast after these passes, and the last of them."""
    forecast, seen = Forecast(), None
    for gap in gaps:
        seen = Seen(visited, gap, kind=kind)
        forecast.after_pass(seen)
    return forecast, seen


@pytest.mark.parametrize("kind", [kind for kind in FIRST_GUESS if kind != "falling"])
def test_without_a_rate_it_is_the_first_guess(kind):
    forecast, seen = after([0.1], kind)
    assert forecast.gap(seen) == pytest.approx(0.1 * FIRST_GUESS[kind])


# Passes over rcv1, banking77 and news20, C = 0.01 and 0.1: what two of them saw and a certificate
# then found. The rule was made on the first two.
@pytest.mark.parametrize(
    ("before", "seen", "found"),
    [
        (4.26e-3, 1.53e-3, 9.98e-4),
        (2.47e-3, 1.69e-3, 1.66e-3),
        (3.24e-3, 1.54e-3, 1.07e-3),
        (1.88e-3, 1.14e-3, 6.51e-4),
        (3.05e-3, 1.32e-3, 9.01e-4),
        (1.33e-2, 3.05e-3, 1.70e-3),
        (3.81e-3, 2.60e-3, 1.86e-3),
    ],
)
def test_where_the_gap_falls_fast_it_goes_by_the_rate(before, seen, found):
    forecast, last = after([before, seen])
    assert 0.6 * found <= forecast.gap(last) <= 1.5 * found


def test_smooth_losses_fall_as_they_fell():
    forecast, last = after([0.1, 0.01], "smooth")
    assert forecast.gap(last) == pytest.approx(1.25e-3)


def test_few_visits_have_no_rate():
    forecast, _ = after([0.5, 0.1])
    few = Seen(4, 0.01)
    forecast.after_pass(few)
    assert forecast.gap(few) == pytest.approx(0.005)
    many = Seen(10, 0.001)
    forecast.after_pass(many)
    assert forecast.gap(many) == pytest.approx(0.0005)


@pytest.mark.parametrize("gaps", [[0.5, 0.45, 0.4], [0.5, 0.2, 0.08]])
@pytest.mark.parametrize("truth", [0.2, 0.6, 0.95])
def test_it_learns_what_certificates_found(gaps, truth):
    forecast, last = after(gaps)
    forecast.learn(last, truth * last.gap)
    assert forecast.gap(last) <= 1.001 * truth * last.gap
    if truth * math.sqrt(gaps[-2] / gaps[-1]) < 1:
        assert forecast.gap(last) == pytest.approx(truth * last.gap)


def test_more_than_was_seen_is_believed_half():
    forecast, last = after([0.5, 0.49])
    forecast.learn(last, 4.0 * last.gap)
    assert forecast.gap(last) == pytest.approx(2.0 * last.gap)


@pytest.mark.parametrize("gap", [math.nan, math.inf, 0.0])
@pytest.mark.parametrize("found", [math.nan, math.inf, 1e-3])
def test_gaps_that_are_no_numbers_teach_nothing(gap, found):
    forecast, last = after([0.5, gap])
    forecast.learn(last, found)
    fresh = Seen(10, 0.25)
    forecast.after_pass(fresh)
    assert math.isfinite(forecast.gap(fresh)) and forecast.gap(fresh) <= 0.25


def test_it_can_be_saved():
    forecast, last = after([0.5, 0.2, 0.08])
    forecast.learn(last, 0.03)
    other = Forecast()
    other.load_state_dict(forecast.state_dict())
    for f in (forecast, other):
        f.after_pass(Seen(9, 0.05))
    assert other.gap(Seen(9, 0.05)) == forecast.gap(Seen(9, 0.05))
    bad = forecast.state_dict()
    bad["guess"]["full"] = -1.0
    with pytest.raises(CheckpointError):
        other.load_state_dict(bad)
