"""Tests of polymargin.cli."""
