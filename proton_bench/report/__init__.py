"""Reports: renderables made of profiles and comparisons. They print nothing; the caller does."""

from __future__ import annotations

__all__: list[str] = []
