"""Reports of a result: plain text and a self-contained page."""

from dynident.report.html import html_report
from dynident.report.summary import summary

__all__ = ["html_report", "summary"]
