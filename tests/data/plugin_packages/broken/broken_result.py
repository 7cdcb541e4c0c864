"""A plugin whose hook returns something that is not a backend."""

from __future__ import annotations

from proton_bench.plugin import hookimpl


@hookimpl
def proton_backends() -> list[object]:
    return ["broken"]
