"""Choices of users, by name; the command line shows them before anything is computed."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["DEFAULT_DEPTH", "QUANTILES", "By"]

DEFAULT_DEPTH = 100
# Names of columns and their quantiles.
QUANTILES = {
    "p5": 0.05,
    "p25": 0.25,
    "median": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
}


class By(StrEnum):
    """Kind of rows of a comparison."""

    PATH = "path"
    KERNEL = "kernel"
    LINE = "line"
    SCOPE = "scope"
    TEST = "test"
