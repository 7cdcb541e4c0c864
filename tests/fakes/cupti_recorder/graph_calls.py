"""CUDA graphs through libcuda itself: what torch does not offer (update, clone, child graphs)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_RELAXED = 2


class GraphCalls:
    """Makes graphs on one stream and destroys them at the end."""

    def __init__(self, stream: int) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._stream = ctypes.c_void_p(stream)
        self._graphs: list[ctypes.c_void_p] = []
        self._executables: list[ctypes.c_void_p] = []

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._cuda, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def _made(self, name: str, *arguments: object) -> ctypes.c_void_p:
        """Call ``name(&handle, *arguments)`` and return the handle."""
        handle = ctypes.c_void_p()
        self._call(name, ctypes.byref(handle), *arguments)
        return handle

    def capture(self, work: Callable[[], object]) -> ctypes.c_void_p:
        """Return the graph of what ``work`` launches on the stream."""
        self._call("cuStreamBeginCapture_v2", self._stream, _RELAXED)
        work()
        graph = ctypes.c_void_p()
        self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._graphs.append(graph)
        return graph

    def instantiate(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """Return an executable graph."""
        executable = self._made("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
        self._executables.append(executable)
        return executable

    def launch(self, executable: ctypes.c_void_p, times: int) -> None:
        """Replay on the stream."""
        for _ in range(times):
            self._call("cuGraphLaunch", executable, self._stream)

    def update(self, executable: ctypes.c_void_p, graph: ctypes.c_void_p) -> None:
        """Give the executable graph the parameters of another graph of its shape."""
        answer = (ctypes.c_uint64 * 16)()
        self._call("cuGraphExecUpdate_v2", executable, graph, answer)

    def clone(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """Return a copy of the graph."""
        self._graphs.append(self._made("cuGraphClone", graph))
        return self._graphs[-1]

    def parent_of(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """Return a new graph whose only node is ``graph``."""
        parent = self._made("cuGraphCreate", ctypes.c_uint(0))
        self._graphs.append(parent)
        self._made("cuGraphAddChildGraphNode", parent, None, ctypes.c_size_t(0), graph)
        return parent

    def destroy(self) -> None:
        """Destroy every graph that was made here."""
        for executable in self._executables:
            self._call("cuGraphExecDestroy", executable)
        for graph in self._graphs:
            self._call("cuGraphDestroy", graph)
