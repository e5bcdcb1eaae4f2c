"""Engines: what the loop of :mod:`polymargin.solvers.run` drives.

An engine makes one pass at a time and can say what its model is worth; when to stop, what to keep,
to note and to save is the loop's.
"""
