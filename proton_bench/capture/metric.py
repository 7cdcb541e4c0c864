"""Turns what users pass as metrics into (name, aggregation, value) for the native module."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from proton_bench.capture.native import native
from proton_bench.errors import MetricError

__all__ = [
    "Aggregation",
    "Metric",
    "add_scope_metrics",
    "normalize_metrics",
    "parse_metric_name",
    "set_tensor_capture",
]

Aggregation: TypeAlias = Literal["inc", "exc", "pty"]
Metric: TypeAlias = tuple[str, Aggregation, object]

_SUFFIXES: dict[str, Aggregation] = {"(inc)": "inc", "(exc)": "exc", "(pty)": "pty"}
_INT64_LIMIT = 2**63
# One type each, whatever the caller computes with, so that sums never meet another type.
_ROOFLINE_TYPES: dict[str, type[int] | type[float]] = {
    "flops": float,
    "flops8": float,
    "flops16": float,
    "flops32": float,
    "flops64": float,
    "bytes": int,
}
# What reads a tensor while a graph is captured: name, tensor, the metric's type where it is fixed.
TensorCapture: TypeAlias = Callable[[str, Any, type[int] | type[float] | None], object]
_tensor_capture: TensorCapture | None = None
_ACCEPTED = "int, float, bool, a flat list or tuple of them, or a numpy array or tensor of them"


def add_scope_metrics(metrics: Mapping[str, object]) -> None:
    """Add metrics to the context of the calling thread, in every active session.

    Tensors on a device are copied to the host, which waits for the device; while a CUDA graph is
    captured, each launch of the graph leaves what they hold then. Nothing is read while no session
    is active.

    Args:
        metrics: Values by name; a name may end in ``(inc)``, ``(exc)`` or ``(pty)``.

    Raises:
        MetricError: A name or value is not usable, or does not fit what was recorded before.
    """
    if native.active_session_count():
        native.add_metrics(normalize_metrics(metrics))


def set_tensor_capture(capture: TensorCapture | None) -> None:
    """Set what reads tensors on a device while a graph is captured; None: nothing can."""
    global _tensor_capture
    _tensor_capture = capture


def normalize_metrics(metrics: Mapping[str, object]) -> list[Metric]:
    """Check names and values and make plain Python values of arrays and tensors.

    Raises:
        MetricError: ``metrics`` is no mapping, or a name or value is not usable.
    """
    if not isinstance(metrics, Mapping):
        raise MetricError(
            f"metrics are a mapping from names to values, not {type(metrics).__name__}: "
            'write {"bytes": 1024}'
        )
    normalized: list[Metric] = []
    for key, value in metrics.items():
        name, aggregation = parse_metric_name(key)
        normalized.append((name, aggregation, _typed(name, value)))
    return normalized


def parse_metric_name(key: str) -> tuple[str, Aggregation]:
    """Split ``"time (ns)(exc)"`` into ``("time (ns)", "exc")``.

    Args:
        key: Name with unit and an optional aggregation suffix; without one it is inclusive.

    Raises:
        MetricError: The name is empty or no text.
    """
    if not isinstance(key, str):
        raise MetricError(f"metric name {key!r} is {type(key).__name__}: names are texts")
    name, aggregation = key.strip(), _SUFFIXES["(inc)"]
    if name.endswith(tuple(_SUFFIXES)):
        name, aggregation = name[:-5].rstrip(), _SUFFIXES[name[-5:]]
    if not name:
        raise MetricError(f"metric name {key!r} is empty: name what is measured, as in 'bytes'")
    return name, aggregation


def _typed(name: str, value: object) -> object:
    convert = _ROOFLINE_TYPES.get(name)
    if _tensor_capture is not None and getattr(value, "is_cuda", False) and native.is_capturing():
        return _tensor_capture(name, value, convert)
    plain = _plain(name, value)
    if convert is None:
        return plain
    try:
        if isinstance(plain, list):
            return [convert(each) for each in plain]
        return convert(plain)
    except (OverflowError, ValueError):
        raise MetricError(
            f"metric {name!r} has the value {plain!r}, which is no {convert.__name__}"
        ) from None


def _plain(name: str, value: object) -> Any:
    if isinstance(value, (list, tuple)):
        return _vector(name, value)
    if hasattr(value, "tolist"):
        return _from_array(name, value)
    return _scalar(name, value)


def _from_array(name: str, array: Any) -> Any:
    native.mute_ops()  # reading a tensor runs operators, which are not the target's
    try:
        plain = array.tolist()
    except Exception as error:
        # Tensor libraries raise their own types, e.g. while a CUDA graph is captured.
        raise MetricError(f"metric {name!r}: its tensor cannot be read now: {error}") from error
    finally:
        native.unmute_ops()
    return _vector(name, plain) if isinstance(plain, list) else _scalar(name, plain)


def _vector(name: str, values: list[object] | tuple[object, ...]) -> list[int] | list[float]:
    if not values:
        raise MetricError(f"metric {name!r} is an empty vector: give at least one value")
    scalars = [_scalar(name, each) for each in values]
    if any(isinstance(each, float) for each in scalars):
        return [float(each) for each in scalars]
    return scalars


def _scalar(name: str, value: Any) -> Any:
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (str, bytes)) or value is None:
        raise _unusable(name, value)
    if hasattr(value, "__index__") and not isinstance(value, type):
        number = _integer(name, value)
        if not -_INT64_LIMIT <= number < _INT64_LIMIT:
            raise MetricError(f"metric {name!r} is {number}, too large for int64: pass a float")
        return number
    # numpy and torch scalars inside lists, fractions and decimals
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise _unusable(name, value)


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except Exception as error:
        raise MetricError(f"metric {name!r} cannot be read as an integer: {error}") from error


def _unusable(name: str, value: object) -> MetricError:
    return MetricError(
        f"metric {name!r} has a value of type {type(value).__name__}; values are {_ACCEPTED}"
    )
