"""Models whose operators launch kernels, without a GPU: each operator reports one of its name.

``python model_kernels.py CONTEXT:PROGRAM...`` runs programs of ``model_programs.py``, each in a
session of its own, and prints as a line of JSON, by context and program, the launches of each path
and what the program returned.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from proton_bench import _native
from proton_bench.recording.session.conversion import encode_phase


def launch(name: str) -> None:
    """Launch a kernel of the calling thread, which takes a microsecond."""
    correlation_id = _native.emit_launch()
    now_ns = time.monotonic_ns()
    _native.emit_kernel(correlation_id, name, now_ns, now_ns + 1000, "CUDA", 0, 0)


class Kernels(TorchDispatchMode):
    """Makes every operator launch a kernel of its name."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Launch, and compute on the host."""
        launch(f"{func.overloadpacket.__name__}_kernel")
        return func(*args, **(kwargs or {}))


def paths_of(tree: list[Any]) -> dict[str, int]:
    """Return the launches of each path of a tree of the hatchet format, by " > " joined names."""
    found: dict[str, int] = {}
    pending: list[tuple[tuple[str, ...], Any]] = [((), child) for child in tree[0]["children"]]
    while pending:
        above, node = pending.pop()
        path = (*above, node["frame"]["name"])
        count = node["metrics"].get("count", 0)
        if not node["children"] and count:
            found[" > ".join(path)] = found.get(" > ".join(path), 0) + count
        pending += [(path, child) for child in node["children"]]
    return found


def run(program: Any, context: str) -> dict[str, Any]:
    """Run a program in a session, and return its paths and what it returned."""
    from proton_bench.recording.models.torch_context import torch_context

    core = _native.Session(context, False)
    torch_context.hold(core.id, context)
    core.activate()
    try:
        returned = program()
    finally:
        core.deactivate()
        torch_context.release(core.id)
    tree = json.loads(encode_phase(core, 0, "hatchet"))
    return {"paths": paths_of(tree), "returned": returned, "dropped": core.counts()["dropped"]}


def main(words: list[str]) -> None:
    """Run programs and print what was recorded."""
    import model_programs

    results: dict[str, dict[str, Any]] = {}
    for word in words:
        context, _, name = word.partition(":")
        results.setdefault(context, {})[name] = run(getattr(model_programs, name), context)
    sys.stdout.write(f"{json.dumps(results)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
