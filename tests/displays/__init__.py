"""Tests of polymargin.displays."""
