"""Hooks in Triton and Inductor while any session lives, for every backend.

They do not affect launches: the chain of loaded kernels does not disable Inductor's static
launcher.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench.recording.context.metric import set_tensor_capture
from proton_bench.recording.kernels.hooks import TritonHeads
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.stderr import say
from proton_bench_plugins.patch import Patch
from proton_bench_plugins.triton import codes, graph_values, trials

_PATCHED: dict[str, Callable[[ModuleType], Sequence[Patch]]] = {
    "triton.runtime.autotuner": trials.watch_triton,
    "torch._inductor.runtime.benchmarking": trials.watch_benchmarks,
    "torch._inductor.runtime.triton_heuristics": trials.watch_inductor,
    "torch._inductor.runtime.static_triton_launcher": codes.watch_static_launcher,
}


def _loaded(module: Any, function: int, name: str, metadata_group: Any, hash: str) -> None:  # noqa: PLR0917 - Triton's signature
    del module, name
    codes.note_function(function, hash, trials.config_of_trial())
    if isinstance(metadata_group, Mapping):
        codes.note_files(hash, metadata_group.values())


class Observer:
    """Attached from the first session to the last."""

    def __init__(self) -> None:
        self._sessions: set[int] = set()
        self._undo = contextlib.ExitStack()
        self._heads = TritonHeads({"kernel_load_end_hook": _loaded})

    def begin(self, session: int) -> None:
        """Attach for a session; libraries that are imported later are attached then."""
        if not self._sessions:
            self._attach()
        self._sessions.add(session)

    def end(self, session: int) -> None:
        """Detach unless another session lives."""
        # A session whose file could not be written ends without this call.
        self._sessions.intersection_update(_native.live_sessions())
        self._sessions.discard(session)
        if not self._sessions:
            self._undo.close()

    def _attach(self) -> None:
        self._undo.close()
        set_tensor_capture(graph_values.append, graph_values.prepare)
        self._undo.callback(set_tensor_capture, None)
        self._heads.attach()
        self._undo.callback(self._heads.detach)
        for name, attach in _PATCHED.items():
            self._undo.callback(ImportCallback(name, self._patching(attach)).cancel)
        codes.note_loaded()

    def _patching(
        self, attach: Callable[[ModuleType], Sequence[Patch]]
    ) -> Callable[[ModuleType], None]:
        def patch(module: ModuleType) -> None:
            try:
                for each in attach(module):
                    self._undo.callback(each.remove)
            except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
                say(
                    f"warning: trials of {module.__name__} are not separated: "
                    f"{type(error).__name__}: {error}"
                )

        return patch
