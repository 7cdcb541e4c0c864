"""Tensor metrics during CUDA graph capture: each launch writes their values."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proton_bench import _native
from proton_bench.errors import MetricError
from proton_bench.recording.context.metric import own_operators

_METADATA_STATE = "__proton_launch_metadata"
_KERNEL_NAME = "<metric>"  # upstream's name for these kernels


class _Words:
    """A ring in the form of a tensor for Triton."""

    def __init__(self, address: int, dtype: Any) -> None:
        self._address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self._address


class _Place(threading.local):
    state = _METADATA_STATE  # of the thread's next kernel that writes values


_place = _Place()


@contextmanager
def metadata_of(kernel: str) -> Iterator[None]:
    """Put kernels of the calling thread below the metadata of this kernel's launch."""
    _place.state = f"{_METADATA_STATE}:{kernel}"
    try:
        yield
    finally:
        del _place.state


def append(name: str, tensor: Any, kind: type[int] | type[float] | None) -> _native.DeviceValues:
    """Capture a kernel that writes the tensor's values for the host at each launch of the graph.

    Args:
        name: Of the metric, for messages.
        tensor: On the device whose current stream captures; one element or one dimension.
        kind: Type of the metric; None means the tensor's.

    Raises:
        MetricError: The tensor cannot be read so, or there is no memory for its values.
    """
    import torch

    is_one = tensor.numel() == 1
    if tensor.numel() == 0 or tensor.is_complex() or not (is_one or tensor.dim() == 1):
        raise MetricError(
            f"metric {name!r} is a tensor of shape {tuple(tensor.shape)} of {tensor.dtype}: "
            "give a scalar or a flat vector of real numbers"
        )
    is_float = bool(tensor.is_floating_point()) if kind is None else kind is float
    _native.enter_state(_place.state)
    try:
        # The kernel's code may have to be loaded.
        with own_operators(), torch.cuda.device(tensor.device):
            if not torch.cuda.is_current_stream_capturing():
                raise MetricError(
                    f"metric {name!r} is on {tensor.device}, which cannot be captured"
                )
            ring = _native.DeviceValues(tensor.numel(), is_float, not is_one)
            values = tensor.detach().contiguous()
            _native.enter_op(_KERNEL_NAME)
            try:
                _launch(ring, values, is_float=is_float)
            finally:
                _native.exit_op()
            return ring
    except MetricError:
        raise
    except Exception as error:
        raise MetricError(f"metric {name!r}: its tensor cannot be captured: {error}") from error
    finally:
        _native.exit_state()


def prepare() -> None:
    """Compile the kernel for scalars on the current device, if there is a driver."""
    import torch

    if not torch.cuda.is_available() or _native.is_capturing():
        return
    from proton_bench_plugins.triton.append_kernel import append_values

    for dtype, is_float in ((torch.int64, False), (torch.float64, True)):
        append_values.warmup(
            *(torch.int64, dtype, 1, 1), is_float=is_float, block=1, num_warps=1, grid=(1,)
        )


def _launch(ring: _native.DeviceValues, tensor: Any, *, is_float: bool) -> None:
    import torch
    import triton

    from proton_bench_plugins.triton.append_kernel import append_values

    block = triton.next_power_of_2(ring.size)
    words = _Words(ring.address, torch.int64)
    append_values[(1,)](
        words, tensor, ring.size, ring.capacity, is_float=is_float, block=block, num_warps=1
    )
