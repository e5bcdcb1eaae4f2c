"""Tests of the projections."""
