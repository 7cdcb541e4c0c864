"""Checks whether a kernel leaves shared memory for its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proton_bench.errors import UsageError
from proton_bench_plugins.instrumentation.compiler.record_count import most_records
from proton_bench_plugins.instrumentation.compiler.records import kernel_warps
from proton_bench_plugins.instrumentation.compiler.target import Target
from proton_bench_plugins.instrumentation.settings import Settings

__all__ = ["check_space", "needed_bytes"]

_HEADER_BYTES = 40
_RECORD_BYTES = 8
_LEAST_SEGMENT = 32  # least bytes of a warp: both records of two scopes


def needed_bytes(text: str, settings: Settings) -> int | None:
    """Return how large a program's buffer must be to hold all its records.

    Args:
        text: TTGIR without locations.
        settings: Options of the mode.

    Returns:
        Bytes, a power of two for each recording warp; None if a loop depends on the kernel's
        arguments, or the settings give a size.
    """
    records, warps = most_records(text), kernel_warps(text)
    if settings.buffer_size or records is None or warps is None:
        return None
    segment_bytes = 1 << (records * _RECORD_BYTES - 1).bit_length()
    return (len(settings.warp_ids) or warps) * max(segment_bytes, _LEAST_SEGMENT)


def check_space(
    kernel: str, metadata: Mapping[str, Any], target: Target, *, settings: Settings
) -> None:
    """Raise if a kernel leaves no room for its records.

    Args:
        kernel: Name of the kernel.
        metadata: Triton's metadata of the compiled kernel.
        target: Device to compile for.
        settings: Options of the mode.

    Raises:
        UsageError: There is none; also an ``OutOfResources`` of Triton's, so that an autotuner
            continues with the next configuration.
    """
    if settings.buffer_type != "shared":
        return
    warps, shared = int(metadata["num_warps"]), int(metadata["shared"])
    segments = len(settings.warp_ids) or warps
    most = int(metadata["profile_scratch_size"]) - _HEADER_BYTES - 4 * warps
    is_tiny = most < segments * _LEAST_SEGMENT and not settings.buffer_size
    # Beyond the limit because of the records; otherwise Triton reports it.
    is_beyond = shared > target.max_shared >= shared - most
    if is_tiny or is_beyond:
        raise _shortage(
            f"buffer_type=shared: kernel {kernel!r} leaves no shared memory for records of "
            f"{segments} warps (with them it needs {shared} of {target.max_shared} bytes); write "
            "buffer_type=global, or select warps with sampling_options"
        )


def _shortage(message: str) -> UsageError:
    from triton.runtime.errors import OutOfResources

    class RecordSpaceError(UsageError, OutOfResources):  # type: ignore[misc]
        """No shared memory for records."""

        def __init__(self, message: str) -> None:
            Exception.__init__(self, message)

        def __str__(self) -> str:
            return message

        def __reduce__(self) -> Any:
            return (_shortage, (message,))

    return RecordSpaceError(message)
