"""Tests; run from the project root."""
