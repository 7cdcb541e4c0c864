"""Record one workload in this process: worker.py WORKLOAD RECORDER LIBCUPTI OUTPUT."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import workloads

KERNEL, MEMCPY, MEMSET, DEVICE, CONTEXT, PEER, GRAPH = 10, 1, 2, 8, 9, 22, 51


class Recording:
    """Face of libcupti_recorder.so."""

    def __init__(self, recorder: str, cupti: str, kinds: tuple[int, ...]) -> None:
        self._library = ctypes.CDLL(recorder)
        self._library.recorder_error.restype = ctypes.c_char_p
        self._cupti = cupti
        self._kinds = kinds

    def mark(self, text: str) -> None:
        """Note a place in the stream."""
        self._library.recorder_mark(text.encode())

    def fact(self, key: str, value: object) -> None:
        """Note something about the machine or the workload."""
        self._library.recorder_fact(key.encode(), str(value).encode())

    @contextmanager
    def __call__(self) -> Iterator[workloads.Mark]:
        """Record while the block runs.

        Raises:
            RuntimeError: libcupti refuses.
        """
        kinds = (ctypes.c_int * (len(self._kinds) + 1))(*self._kinds, -1)
        if self._library.recorder_start(self._cupti.encode(), kinds):
            raise RuntimeError(f"the recording did not start: {self.error()}")
        yield self.mark

    def write(self, path: str) -> None:
        """End the recording.

        Raises:
            RuntimeError: The file cannot be written.
        """
        if self._library.recorder_stop(path.encode()):
            raise RuntimeError(self.error())

    def error(self) -> str:
        """Return what failed so far."""
        return str(self._library.recorder_error().decode())


def note_machine(recording: Recording) -> None:
    """Add versions and the device as facts; what cannot be asked is left out."""
    with suppress(Exception):
        import torch
        import triton

        recording.fact("torch", torch.__version__)
        recording.fact("triton", triton.__version__)
        properties = torch.cuda.get_device_properties(0)
        recording.fact("device", properties.name)
        recording.fact("capability", f"{properties.major}.{properties.minor}")
    with suppress(Exception):
        version = ctypes.c_int()
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
        recording.fact("driver_version", version.value)


def main() -> None:
    """Run the workload of the command line and write its stream."""
    name, recorder, cupti, output = sys.argv[1:]
    kinds = (KERNEL, MEMCPY, MEMSET, PEER, DEVICE, CONTEXT)
    if name == "graph_traced":
        kinds = (*kinds, GRAPH)
    recording = Recording(recorder, cupti, kinds)
    recording.fact("workload", name)
    try:
        expected = getattr(workloads, name)(recording)
        recording.fact("expected", json.dumps(expected))
    except Exception as error:
        # What was recorded up to here may say why.
        recording.fact("failed", f"workload: {error!r}")
        recording.write(output)
        raise
    if name != "double":
        note_machine(recording)
    recording.write(output)
    if recording.error():
        sys.stderr.write(f"{name}: {recording.error()}\n")


if __name__ == "__main__":
    main()
