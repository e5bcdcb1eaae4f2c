"""What comes of a future, and Ctrl-C while it is awaited."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from polymargin.waiting import result_of


def test_results_and_errors_come_out():
    good, bad = Future(), Future()
    good.set_result(3)
    bad.set_exception(RuntimeError("an error of the work"))
    assert result_of(good) == 3
    with pytest.raises(RuntimeError, match="of the work"):
        result_of(bad)


def test_ctrl_c_between_letting_go_of_the_lock_and_waiting():
    future = Future()
    let_go = future._condition._release_save

    def interrupted():
        let_go()
        raise KeyboardInterrupt

    future._condition._release_save = interrupted
    with pytest.raises(RuntimeError, match="un-acquired"):
        future.result()
    with pytest.raises(KeyboardInterrupt):
        result_of(future)
