"""Launches kernels in sessions with passes, on a simulated driver.

    python pass_session.py

prints one JSON object with the calls of the runtime and the messages to the user.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from fakes.instrumented_session import Runtime, launch
from fakes.pass_kernels import unrolled
from fakes.triton_driver import FakeDriver

import proton_bench.language as pl
from proton_bench.mode import Default
from proton_bench.plugin.backend import parse_mode
from proton_bench_plugins.instrumentation.collector import InstrumentationCollector
from proton_bench_plugins.instrumentation.settings import read_settings


def launch_unrolled() -> Any:
    """Launch a kernel with more loads than there are scope ids."""
    return unrolled[(1,)](torch.zeros(64), torch.zeros(64), 3, BLOCK=128)


def session(passes: str, launch: Any = launch) -> dict[str, Any]:
    """Launch once in a session with passes."""
    runtime = Runtime()
    settings = read_settings(parse_mode(str(Default(passes=passes))))
    collector = InstrumentationCollector(settings, runtime)
    collector.start()
    try:
        kernel = launch()
    finally:
        collector.stop()
    launched = [each[1] for each in runtime.seen if each[0] == "launched"]
    return {
        "passes": settings.passes,
        "hash": kernel.hash,
        "names": list(launched[0][1].values()) if launched and launched[0] else [],
        "remark": collector.remark({}),
        "left_out": collector.facts().get("scopes_left_out"),
    }


def main() -> None:
    FakeDriver()
    pl.enable_semantic("triton")
    texts = (
        *("stores", "stores,loops:line=1-999", "loads:kernel=other", "print-ops", "loops,stores"),
        "stores,loads:line=5000-",
    )
    found = {text: session(text) for text in texts}
    found["crowded"] = session("loads", launch_unrolled)
    found["empty"] = session("dots:kernel=unrolled", launch_unrolled)
    pl.disable_semantic("triton")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
