"""Follows a recorded program into the Python processes that it starts.

``proton run`` puts this folder in front of PYTHONPATH, so the interpreter of each child imports
this module at its start. It costs a child almost nothing until the child imports something that can
be recorded; then it opens a session for the child. It also imports the ``sitecustomize`` that it
hides.

Before that moment only a little of the standard library may be imported.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # importing typing would cost each child time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_OPTIONS = "PROTON_BENCH_AUTOSTART"
_RANK_TAKEN = "PROTON_BENCH_RANK_TAKEN"
# Set by pytest-xdist in a worker, after its start.
_XDIST_WORKER = "PYTEST_XDIST_WORKER"
# Those of recording/job_ranks.py, in its order.
_RANKS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID"),
    *("JSM_NAMESPACE_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"),
)
_RECORDABLE = frozenset(("torch", "triton", "proton_bench"))
_OWN_SCRIPTS = ("proton", "proton-bench", "proton-viewer", "proton-bench-viewer")
_OWN_RUNNER = os.path.join("proton_bench", "recording", "launcher", "bootstrap.py")
_FORKSERVER = "from multiprocessing.forkserver import main"


class ChildFinder:
    """Finds no module, but notices the first import that makes this process worth recording.

    Args:
        is_rank: This process is a rank of a job, whose children inherit the same rank.
        waits_for_fork: This is the server that multiprocessing forks its workers from; they are
            recorded, not the server.
    """

    def __init__(self, *, is_rank: bool, waits_for_fork: bool) -> None:
        self._is_rank = is_rank
        self._waits_for_fork = waits_for_fork
        self._is_due = False
        self._process_id = os.getpid()
        self._was_xdist_worker = os.environ.get(_XDIST_WORKER)
        os.register_at_fork(after_in_child=self._forked)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Open the session before the import goes on, then let the other finders find."""
        if fullname not in _RECORDABLE or self not in sys.meta_path:
            return None
        if self._waits_for_fork:
            self._is_due = True
            return None
        self._open()
        if fullname in sys.modules:
            loader: Any = _LoadedModule()
            return ModuleSpec(fullname, loader)
        # From the first one again: finders may have been added in front meanwhile.
        for finder in list(sys.meta_path):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def _open(self) -> None:
        sys.meta_path.remove(self)
        if os.environ.get(_XDIST_WORKER) != self._was_xdist_worker:
            return  # the pytest plugin records its workers itself
        try:
            from proton_bench.recording.children.autostart import start_child

            start_child(is_rank=self._is_rank)
        except Exception as error:  # noqa: BLE001 - the child's own import must go on
            name = getattr(error, "name", None)
            reason = f"proton_bench is not installed for {sys.executable}"
            if not (isinstance(name, str) and name.startswith("proton_bench")):
                reason = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"proton: warning: process {os.getpid()} is not recorded: {reason}\n")

    def _forked(self) -> None:
        if self not in sys.meta_path:
            return
        if not self._waits_for_fork:
            sys.meta_path.remove(self)  # a forked child is not recorded
            return
        self._waits_for_fork = False
        util = sys.modules.get("multiprocessing.util")
        if self._is_due and util is not None:
            # Not before multiprocessing has made the worker a process of its own.
            util.register_after_fork(self, ChildFinder._open)


class _LoadedModule:
    """Returns a module that opening the session already loaded."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = sys.modules[spec.name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _is_our_own(command_line: list[str]) -> bool:
    """Whether this process is one of our commands, which decide themselves what to record."""
    words = command_line[1:]
    script = next((word for word in words if not word.startswith("-")), "")
    is_script = os.path.basename(script) in _OWN_SCRIPTS or script.endswith(_OWN_RUNNER)
    if is_script and "-c" not in words:
        return True
    module = next((i for i, word in enumerate(words) if word.endswith("m")), len(words))
    if not words[module : module + 1] or not words[module].startswith("-"):
        return False
    return "".join(words[module + 1 : module + 2]).partition(".")[0] == "proton_bench"


def _take_rank() -> bool:
    variable = next((name for name in _RANKS if name in os.environ), None)
    if variable is None:
        return False
    rank = f"{variable}={os.environ[variable]}"
    is_first = os.environ.get(_RANK_TAKEN) != rank
    os.environ[_RANK_TAKEN] = rank
    return is_first


def _import_next() -> bool:
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return False
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)
    return True


def _follow() -> None:
    command_line = list(getattr(sys, "orig_argv", ()))
    if not os.environ.get(_OPTIONS) or _is_our_own(command_line):
        return
    is_server = any(_FORKSERVER in word for word in command_line)
    sys.meta_path.insert(0, ChildFinder(is_rank=_take_rank(), waits_for_fork=is_server))


sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _FOLDER]
_follow()
if not _import_next():
    # As without the profiler: the interpreter finds no such module, and a script may import its
    # own.
    raise ImportError("there is no other sitecustomize", name="sitecustomize")
