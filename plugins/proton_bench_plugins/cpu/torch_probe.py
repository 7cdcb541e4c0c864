"""Tests in a separate process whether this torch shows its operators to a native observer.

The observer is found by symbol and relies on layouts of libtorch: with others, observing may crash.
``python torch_probe.py FOLDER...`` imports torch, also from those folders, observes a few operators
and prints the result as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence

__all__ = ["KINDS", "LIBRARY", "main", "reason_against"]

LIBRARY = "libtorch_cpu.so"
RANGE = "proton_bench probe"
# An operator of each kind that the probe runs, as (kind, name).
KINDS = (("operator", "aten::empty"), ("backward", "SumBackward0"), ("user", RANGE))
Seen = Sequence[tuple[str, str, bool, bool]]


def _run_operators() -> None:
    import torch

    def train() -> None:
        x = torch.empty(4).fill_(1.0).requires_grad_()
        with torch.autograd.profiler.record_function(RANGE):
            (x * x).softmax(0).sum().backward()

    train()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()


def reason_against(seen: Seen) -> str:
    """Return the fault in the result of a probe, or "".

    Args:
        seen: Kind, name, whether the kind can be read from it, whether its end was seen.
    """
    for kind, name in KINDS:
        if not any(each[:2] == (kind, name) for each in seen):
            return f"it did not show the {kind} {name!r}"
    if not all(has_ended for *_, has_ended in seen):
        return "it did not show the end of every operator"
    return ""


def main(arguments: Sequence[str]) -> None:
    """Probe and print the findings."""
    # After the path: needed if the program finds its packages in its own way.
    sys.path.extend(arguments)
    import torch

    from proton_bench import _native

    try:
        seen = _native.probe_torch(_run_operators)
        torch.ones(1)  # with the observer removed
        reason = reason_against(seen)
    except Exception as error:  # noqa: BLE001 - any error is the finding
        seen, reason = [], f"{type(error).__name__}: {error}"
    findings = {
        "build_id": _native.loaded_build_id(LIBRARY),
        "reads_scope": bool(seen) and all(tells_scope for _, _, tells_scope, _ in seen),
        "reason": reason,
    }
    sys.stdout.write(f"{json.dumps(findings)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
