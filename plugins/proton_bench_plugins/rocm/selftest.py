"""A program for ``proton doctor`` that starts a backend of AMD GPUs once.

ROCm's libraries are started only in its process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["MARK", "main"]

MARK = "proton_bench selftest: "


def main(backend: str) -> None:
    """Print one line of JSON after ``MARK``: ``error``, or ``facts``.

    Args:
        backend: Its name.
    """
    result = json.dumps(_start(backend))
    sys.stdout.write(f"\n{MARK}{result}\n")
    sys.stdout.flush()
    os._exit(0)  # without the exit handlers of drivers and tools


def _start(backend: str) -> dict[str, Any]:
    from proton_bench.errors import ProtonError
    from proton_bench.plugin import Mode
    from proton_bench.plugin.manager import get_plugin_manager

    try:
        collector = get_plugin_manager().backends()[backend].backend.open(Mode())
        collector.start()
    except ProtonError as error:
        return {"error": str(error)}
    collector.flush()
    facts: dict[str, Any] = collector.facts()  # type: ignore[attr-defined]
    collector.stop()
    return {"facts": facts}


if __name__ == "__main__":
    main(sys.argv[1])
