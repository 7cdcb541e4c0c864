"""These tests open sessions in their own process to record kernels."""

from __future__ import annotations

from capture_fixtures import fakes, no_session_left

__all__ = ["fakes", "no_session_left"]
