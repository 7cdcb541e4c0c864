"""Tests in a separate process whether this torch shows its operators to a native observer.

The observer is found by symbol and relies on layouts of libtorch: with others, observing may crash.
``python torch_probe.py FOLDER...`` imports torch, also from those folders, observes a few operators
and prints the result as one line of JSON.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

LIBRARY = "libtorch_cpu.so"
RANGE = "proton_bench probe"
# An operator of each kind that the probe runs, as (kind, name).
KINDS = (("operator", "aten::empty"), ("backward", "SumBackward0"), ("user", RANGE))
# Kind, name, whether the kind can be read from it, whether its end was seen, words of the memory of
# a backward operator, number of the thread where it ran.
Seen = Sequence[tuple[str, str, bool, bool, list[int], int]]
# Threads and nodes that are created first, so that the numbers of later ones differ from other
# numbers in memory, such as sizes.
_THREADS = 40
_NODES = 1009
_WORD_BYTES = 8


class _Passes:
    """A forward pass on one thread whose backward pass runs on another."""

    def __init__(self) -> None:
        self.loss: Any = None
        self.nodes: dict[str, int] = {}

    def run(self) -> None:
        """Run both, and other operators before."""
        for work in (*[_train] * _THREADS, self._forward, self._backward):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        _train()

    def _forward(self) -> None:
        import torch

        x = torch.empty(4).fill_(1.0).requires_grad_()
        for _ in range(_NODES):
            x.view(4)
        (x * x).tanh().sum().backward()  # says how torch numbers this thread
        self.loss = x.exp().sigmoid().sum()
        node = self.loss.grad_fn
        while node is not None and hasattr(node, "_sequence_nr") and node.next_functions:
            self.nodes[type(node).__name__] = node._sequence_nr()
            node = node.next_functions[0][0]

    def _backward(self) -> None:
        self.loss.backward()


def _train() -> None:
    import torch

    x = torch.empty(4).fill_(1.0).requires_grad_()
    with torch.autograd.profiler.record_function(RANGE):
        (x * x).softmax(0).sum().backward()


def node_offsets(seen: Seen, nodes: Mapping[str, int]) -> tuple[int, int]:
    """Return where operators of a backward pass have the number of their node, and of its thread.

    Args:
        seen: The result of a probe.
        nodes: Numbers of the nodes of the pass on two threads, by name.

    Returns:
        Offsets in bytes, both 0 where they are not certain.
    """
    forward = {thread for _, name, _, _, _, thread in seen if name == "TanhBackward0"}
    own = [each for each in seen if each[0] == "backward" and each[1] in nodes]
    # The same node names also ran in passes on one thread.
    backward = [each for each in own if nodes[each[1]] in each[4]]
    if len(forward) != 1 or len(backward) < len(nodes) or len(nodes) <= 1:
        return 0, 0
    places = range(len(backward[0][4]))
    numbers = [at for at in places if all(each[4][at] == nodes[each[1]] for each in backward)]
    threads = [at for at in places if all({each[4][at]} == forward for each in backward)]
    if len(numbers) != 1 or len(threads) != 1:
        return 0, 0
    return numbers[0] * _WORD_BYTES, threads[0] * _WORD_BYTES


def reason_against(seen: Seen) -> str:
    """Return the fault in the result of a probe, or "".

    Args:
        seen: The result.
    """
    for kind, name in KINDS:
        if not any(each[:2] == (kind, name) for each in seen):
            return f"it did not show the {kind} {name!r}"
    if not all(each[3] for each in seen):
        return "it did not show the end of every operator"
    return ""


def work_operators() -> list[tuple[str, bool]]:
    """Return the operators that torch has a formula for, and whether it needs more than shapes."""
    from torch.utils.flop_counter import flop_registry

    found = []
    for packet, formula in flop_registry.items():
        name = getattr(packet, "_qualified_op_name", "")
        parameters = inspect.signature(formula).parameters.values()
        plain = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        if name:
            # Such as `a_shape`; those that a formula does not use begin with an underscore.
            needs_more = any(each[:1] == "_" or not each.endswith("_shape") for each in plain)
            found.append((name, needs_more))
    return found


def main(arguments: Sequence[str]) -> None:
    """Probe and print the findings."""
    # After the path: needed if the program finds its packages in its own way.
    sys.path.extend(arguments)
    import torch

    from proton_bench import _native
    from proton_bench.recording.models.input_probe import InputProbe

    passes, probe = _Passes(), InputProbe()
    inputs: dict[str, Any] | None = None

    def run() -> None:
        passes.run()
        with contextlib.suppress(Exception):  # without: only the arguments are not known
            probe.run()

    try:
        seen = _native.probe_torch(run, probe.visit)
        torch.ones(1)  # with the observer removed
        reason = reason_against(seen)
    except Exception as error:  # noqa: BLE001 - any error is the finding
        seen, reason = [], f"{type(error).__name__}: {error}"
    with contextlib.suppress(Exception):
        if (layout := probe.layout()) is not None:
            inputs = layout | {"operators": work_operators()}
    node_offset, fwd_thread_offset = node_offsets(seen, passes.nodes)
    findings = {
        "build_id": _native.loaded_build_id(LIBRARY),
        "reads_scope": bool(seen) and all(each[2] for each in seen),
        "node_offset": node_offset,
        "fwd_thread_offset": fwd_thread_offset,
        "reason": reason,
        "inputs": inputs,
    }
    sys.stdout.write(f"{json.dumps(findings)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
