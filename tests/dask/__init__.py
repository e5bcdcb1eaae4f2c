"""Tests of polymargin.dask."""
