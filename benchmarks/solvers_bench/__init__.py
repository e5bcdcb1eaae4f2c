"""polymargin beside what else solves the same problems: one file per solver, one runner, one table.

    python -m benchmarks.solvers_bench [--full] [--fresh] [--data NAME ...] [--C VALUE ...]

`objective` says what is minimised, `problems` on which data, `solvers/` by whom; `base` is what a
solver file fills in. See docs/benchmarking.md.
"""
