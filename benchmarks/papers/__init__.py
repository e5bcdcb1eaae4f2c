"""Experiments of the papers behind the solvers, repeated: one module per table or figure."""
