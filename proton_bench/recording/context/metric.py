"""Converts metrics of users to (name, aggregation, value) for the native module."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from proton_bench.errors import MetricError
from proton_bench.recording.native import native

Aggregation: TypeAlias = Literal["inc", "exc", "pty"]
Metric: TypeAlias = tuple[str, Aggregation, object]

_SUFFIXES: dict[str, Aggregation] = {"(inc)": "inc", "(exc)": "exc", "(pty)": "pty"}
_INT64_LIMIT = 2**63
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED, and HIP's
# One type each, whatever the caller uses, so that sums never mix types.
ROOFLINE_TYPES: dict[str, type[int] | type[float]] = {
    "flops": float,
    "flops8": float,
    "flops16": float,
    "flops32": float,
    "flops64": float,
    "bytes": int,
}
# Reads a tensor during graph capture: name, tensor, the metric's type if it is fixed.
TensorCapture: TypeAlias = Callable[[str, Any, type[int] | type[float] | None], object]
_tensor_capture: TensorCapture | None = None
_prepare_capture: Callable[[], None] | None = None
_ACCEPTED = (
    "int, float, bool, a flat list or tuple of them, a numpy array or tensor of them, or a text of "
    "a property or an exclusive metric"
)


class _TracedError(Exception):
    """The value is a symbol of a trace of torch, not a number."""


def add_scope_metrics(metrics: Mapping[str, object]) -> None:
    """Add metrics to the context of the calling thread, in every active session.

    Tensors on a device are copied to the host, which waits for the device; during the capture of a
    CUDA graph, each launch of the graph records their current values. Nothing is read while no
    session is active.

    Args:
        metrics: Values by name; a name may end in ``(inc)``, ``(exc)`` or ``(pty)``.

    Raises:
        MetricError: A name or value is not usable, or does not match earlier values.
    """
    if native.is_recording():
        native.add_metrics(normalize_metrics(metrics))


def set_tensor_capture(
    capture: TensorCapture | None, prepare: Callable[[], None] | None = None
) -> None:
    """Set the function that reads device tensors during graph capture; None means none.

    Args:
        capture: Reads one.
        prepare: Does the preparation of its first call.
    """
    global _tensor_capture, _prepare_capture
    _tensor_capture, _prepare_capture = capture, prepare


def prepare_tensor_capture() -> None:
    """Prepare for reading the first tensor under capture."""
    if _prepare_capture is not None:
        _prepare_capture()


@contextmanager
def own_operators() -> Iterator[None]:
    """Context in which the calling thread runs operators that are not the target's.

    They are not recorded. While threads capture graphs, they may allocate and wait for streams that
    are not captured; in other modes the driver would end a capture.
    """
    mode = native.exchange_capture_mode(_RELAXED)
    native.mute_ops()
    try:
        yield
    finally:
        native.unmute_ops()
        if mode >= 0:
            native.exchange_capture_mode(mode)


def normalize_metrics(metrics: Mapping[str, object]) -> list[Metric]:
    """Check names and values, and convert arrays and tensors to plain Python values.

    Raises:
        MetricError: ``metrics`` is not a mapping, or a name or value is not usable.
    """
    if not isinstance(metrics, Mapping):
        raise MetricError(
            f"metrics are a mapping from names to values, not {type(metrics).__name__}: "
            'write {"bytes": 1024}'
        )
    normalized: list[Metric] = []
    for key, value in metrics.items():
        name, aggregation = parse_metric_name(key)
        if isinstance(value, str):
            normalized.append((name, aggregation, _text(name, aggregation, value)))
        else:
            try:
                normalized.append((name, aggregation, _typed(name, value)))
            except _TracedError:  # nothing has run
                continue
    return normalized


def _text(name: str, aggregation: Aggregation, value: str) -> str:
    if aggregation == "inc":
        raise MetricError(
            f"metric {name!r} is the text {value[:40]!r}, but texts have no sum over a call path: "
            f"call it '{name} (pty)' or '{name} (exc)', and the newest text is kept"
        )
    return value


def parse_metric_name(key: str) -> tuple[str, Aggregation]:
    """Split ``"time (ns)(exc)"`` into ``("time (ns)", "exc")``.

    Args:
        key: Name with unit and an optional aggregation suffix; without one it is inclusive.

    Raises:
        MetricError: The name is empty or not a text.
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
    convert = ROOFLINE_TYPES.get(name)
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
            f"metric {name!r} has the value {plain!r}, which is not of type {convert.__name__}"
        ) from None


def _plain(name: str, value: object) -> Any:
    if isinstance(value, (list, tuple)):
        return _vector(name, value)
    if hasattr(value, "tolist"):
        return _from_array(name, value)
    return _scalar(name, value)


def _from_array(name: str, array: Any) -> Any:
    if _is_tracing():
        raise _TracedError
    try:
        with own_operators():
            _refuse_captured(array)
            plain = array.tolist()
    except Exception as error:
        # Tensor libraries raise their own types.
        raise MetricError(f"metric {name!r}: its tensor cannot be read now: {error}") from error
    while isinstance(plain, list) and len(plain) == 1:  # one element, whatever the shape
        plain = plain[0]
    return _vector(name, plain) if isinstance(plain, list) else _scalar(name, plain)


def _refuse_captured(array: Any) -> None:
    """Raise if reading a tensor would end the capture of its stream."""
    if not getattr(array, "is_cuda", False):
        return
    import torch

    with torch.cuda.device(array.device):
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a graph is captured whose beginning no session saw")


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
        return _integer(name, value)
    if _is_tracing():
        raise _TracedError
    # numpy and torch scalars inside lists, fractions and decimals
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise _unusable(name, value)


def _integer(name: str, value: Any) -> int | float:
    if type(value) is not int and _is_tracing():
        raise _TracedError
    try:
        number = operator.index(value)
        # Values of more than 64 bits become floats, as sums do.
        return number if -_INT64_LIMIT <= number < _INT64_LIMIT else float(number)
    except Exception as error:
        raise MetricError(f"metric {name!r} cannot be read as an integer: {error}") from error


def _is_tracing() -> bool:
    """Return whether torch traces the program, in ``torch.export`` and ``torch.jit.trace``.

    Reading a value then would fail, or make it part of the trace.
    """
    torch: Any = sys.modules.get("torch")
    compiler = getattr(torch, "compiler", None)
    if compiler is None:
        return False
    return bool(getattr(compiler, "is_compiling", bool)() or torch.jit.is_tracing())


def _unusable(name: str, value: object) -> MetricError:
    return MetricError(
        f"metric {name!r} has a value of type {type(value).__name__}; values are {_ACCEPTED}"
    )
