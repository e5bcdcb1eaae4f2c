"""Killing ``train`` at any moment leaves the old model or the new one, never half of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 40
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_killed_training_leaves_a_whole_model(svm, tmp_path):
    (tmp_path / "model").mkdir()
    target = tmp_path / "model" / "m.pmz"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed_train", str(svm), str(target), str(KILLS)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    assert outcomes["bad"] == []
    assert outcomes["old"] + outcomes["new"] == KILLS + 3
    # the moments were spread over the whole training
    assert outcomes["old"] >= 3
    assert outcomes["new"] >= 1
