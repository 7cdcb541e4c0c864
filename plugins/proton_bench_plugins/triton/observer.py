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

_Attach = Callable[[ModuleType], Sequence[Patch]]
_Places = Mapping[str, _Attach]

_PATCHED: _Places = {
    "triton.runtime.autotuner": trials.watch_triton,
    "torch._inductor.runtime.benchmarking": trials.watch_benchmarks,
    "torch._inductor.runtime.triton_heuristics": trials.watch_inductor,
    "torch._inductor.runtime.static_triton_launcher": codes.watch_static_launcher,
}
_OF_LAUNCHES = {"triton.runtime.autotuner": trials.watch_choices}


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
        self._undo_of_launches = contextlib.ExitStack()
        self._sees_launches = False
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
            self.rest(is_resting=True)

    def rest(self, is_resting: bool) -> None:  # noqa: FBT001
        """Leave launches alone while no session records, and go on afterwards."""
        sees_launches = bool(self._sessions) and not is_resting
        if sees_launches and not self._sees_launches:
            self._patch(_OF_LAUNCHES, self._undo_of_launches)
        elif not sees_launches:
            self._undo_of_launches.close()
        self._sees_launches = sees_launches

    def _attach(self) -> None:
        self._undo.close()
        set_tensor_capture(graph_values.append, graph_values.prepare)
        self._undo.callback(set_tensor_capture, None)
        self._heads.attach()
        self._undo.callback(self._heads.detach)
        self._patch(_PATCHED, self._undo)
        codes.note_loaded()

    def _patch(self, places: _Places, undo: contextlib.ExitStack) -> None:
        for name, attach in places.items():
            undo.callback(ImportCallback(name, self._patching(attach, undo)).cancel)

    @staticmethod
    def _patching(attach: _Attach, undo: contextlib.ExitStack) -> Callable[[ModuleType], None]:
        def patch(module: ModuleType) -> None:
            try:
                for each in attach(module):
                    undo.callback(each.remove)
            except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
                say(
                    f"warning: trials of {module.__name__} are not separated: "
                    f"{type(error).__name__}: {error}"
                )

        return patch
