"""Runs commands in fresh processes, in turn and more than once, and keeps every profile.

What the gate judges comes from here: both sides of `proton ab`, the runs of `proton noise`, and
those of a gate that is asked to record its own (`record_runs`).
"""

from __future__ import annotations

__all__: list[str] = []
