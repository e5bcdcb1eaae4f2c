"""Tests of the benchmarks' own parts."""

import os

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # before any of them imports a compiled baseline
