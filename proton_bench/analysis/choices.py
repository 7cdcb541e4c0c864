"""Choices of users, by name; the command line shows them before anything is computed."""

from __future__ import annotations

from enum import StrEnum

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


class FrameFormat(StrEnum):
    """How much of a Python frame's name is shown; other names are shown in full.

    Which path is short depends on the run, so a tree with short names already has them.
    """

    SHORT = "short"
    FULL = "full"
    FILE_FUNCTION_LINE = "file_function_line"
    FUNCTION_LINE = "function_line"
    FILE_FUNCTION = "file_function"


UPSTREAM_FORMS = tuple(form for form in FrameFormat if form is not FrameFormat.SHORT)
