"""A plugin with a misspelt hook."""

from __future__ import annotations

from proton_bench.plugin import hookimpl


@hookimpl
def proton_backend() -> list[object]:
    return []
