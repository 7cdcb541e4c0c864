"""A plugin whose hook answers with something that is no backend."""

from __future__ import annotations

from proton_bench.plugin import hookimpl


@hookimpl
def proton_backends() -> list[object]:
    return ["broken"]
