"""Tests of polymargin.report."""
