"""The benchmark of the svmlight parser measures the same work on both sides."""

from __future__ import annotations

from benchmarks import svmlight


def test_both_readers_give_the_same_arrays(tmp_path):
    for number in svmlight.KINDS.values():
        svmlight.write_file(tmp_path / "data.svm", 60_000, number)
        assert 60_000 <= (tmp_path / "data.svm").stat().st_size < 70_000
        svmlight.check_equal(tmp_path / "data.svm")
        seconds = svmlight.measure(tmp_path / "data.svm", repeats=1)
        assert set(seconds) == {"scikit-learn", "polymargin", "iter_svmlight"}
