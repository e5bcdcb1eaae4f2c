"""Slow, obvious versions of the mathematics, used as oracles by the tests.

Nothing here imports the package: each module is an independent way to the same number.
"""
