"""Fuzzing of everything that reads bytes: see CONTRIBUTING.md. Not part of the package."""
