"""Benchmarks: speed against LIBLINEAR, cost of a pass, memory and scaling."""
