"""The report: one HTML file that shows every score, its explanation and its limits, readable offline."""

from __future__ import annotations

from fcdd.report.content import Card, Item, ReportData
from fcdd.report.figures import contact_sheet
from fcdd.report.page import render

__all__ = ["Card", "Item", "ReportData", "contact_sheet", "render"]
