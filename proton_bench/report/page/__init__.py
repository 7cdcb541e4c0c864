"""Profiles and comparisons as one HTML file that needs nothing else, no network above all."""

from __future__ import annotations

from proton_bench.report.page.document import PageOptions, comparison_page, profile_page

__all__ = ["PageOptions", "comparison_page", "profile_page"]
