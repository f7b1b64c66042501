"""The HTML report: a run, as a person wants to read it."""

from compoworld_core.viewer.report import ReportData, render_report

__all__ = ["ReportData", "render_report"]
