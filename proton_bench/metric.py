"""Conversion of metric values, under upstream's submodule name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proton_bench.recording.context.metric import ROOFLINE_TYPES, prepare_tensor_capture
from proton_bench.recording.context.state import METADATA_STATE as COMPUTE_METADATA_SCOPE_NAME
from proton_bench.recording.context.state import enter_state, exit_state

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "FLOPS_DTYPES",
    "FLOPS_WIDTHS",
    "ROOFLINE_DTYPES",
    "TensorMetric",
    "enter_state",
    "exit_state",
    "set_metric_kernels",
    "transform_tensor_metrics",
]

# Upstream's numbers for what a metric holds: (one, a vector).
_INDEXES: dict[type[int] | type[float], tuple[int, int]] = {int: (1, 5), float: (2, 6)}

FLOPS_WIDTHS = (8, 16, 32, 64)
# What converts a value, and the numbers of its kind as one value and as a vector.
ROOFLINE_DTYPES: dict[str, tuple[type[int] | type[float], int, int]] = {
    name: (kind, *_INDEXES[kind]) for name, kind in ROOFLINE_TYPES.items()
}
FLOPS_DTYPES = {name: each for name, each in ROOFLINE_DTYPES.items() if name != "bytes"}


class TensorMetric:
    """A value in the memory of a device.

    Attributes:
        ptr: Address of 64-bit values.
        index: Number of their kind.
        size: How many there are.
    """

    def __init__(self, value: Any, index: int) -> None:
        self.ptr: int = value.data_ptr()
        self.index = index
        self.size: int = value.numel()
        self._value = value  # keeps the memory


def transform_tensor_metrics(
    metrics: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, TensorMetric]]:
    """Separate values that the host can read from those on a device.

    Scopes and hooks do without: they take the values as they are.

    Args:
        metrics: Values by name.

    Returns:
        The values of the host, ``flops`` and ``bytes`` in their types, and those of a device.
    """
    plain: dict[str, Any] = {}
    on_device: dict[str, TensorMetric] = {}
    for key, value in metrics.items():
        kind = ROOFLINE_TYPES.get(key)
        if not hasattr(value, "data_ptr"):
            plain[key] = value if kind is None else _converted(value, kind)
        elif value.device.type == "cpu":
            read = value.tolist if value.numel() > 1 else value.item
            plain[key] = value if kind is None else _converted(read(), kind)
        else:
            on_device[key] = _tensor_metric(value, kind)
    return plain, on_device


def set_metric_kernels() -> None:
    """Compile the kernels that read tensors in CUDA graphs; call it before a capture."""
    prepare_tensor_capture()


def _converted(value: Any, kind: type[int] | type[float]) -> Any:
    if isinstance(value, (list, tuple)):
        return [kind(each) for each in value]
    return kind(value)


def _tensor_metric(tensor: Any, kind: type[int] | type[float] | None) -> TensorMetric:
    if kind is None:
        kind = float if tensor.is_floating_point() else int
    one, vector = _INDEXES[kind]
    cast = tensor.double() if kind is float else tensor.long()
    return TensorMetric(cast, vector if cast.numel() > 1 else one)
