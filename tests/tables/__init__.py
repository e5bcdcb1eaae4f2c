"""Columns of tables: decisions and conversions."""
