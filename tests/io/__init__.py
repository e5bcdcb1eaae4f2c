"""Data files and model files."""
