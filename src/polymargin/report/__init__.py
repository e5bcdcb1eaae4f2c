"""A report on a model: one HTML page that needs nothing else."""

from polymargin.report._page import render_report, write_report

__all__ = ["render_report", "write_report"]
