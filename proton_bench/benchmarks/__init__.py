"""Benchmarks of a test run: marker, fixture, what they recorded, and the gate at the end."""

from __future__ import annotations

__all__: list[str] = []
