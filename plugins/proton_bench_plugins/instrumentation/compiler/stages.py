"""The stages of a compile for a session.

Triton calls a hook with the stages of each compile; ours wraps two of them, after those of an
earlier hook. Passes are added only while one of our stages runs on the thread.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from proton_bench.errors import ProtonError, UsageError
from proton_bench.plugin.kernel_mode import KernelPasses
from proton_bench_plugins.instrumentation.compiler.records import (
    check_records,
    check_warps,
    has_records,
    kernel_warps,
)
from proton_bench_plugins.instrumentation.settings import Settings

# Bytes of shared memory that a program may use, by compute capability and by the beginning of AMD's
# names, for compiles without the device.
_CUDA_SHARED = {
    75: 65536,
    80: 166912,
    86: 101376,
    87: 166912,
    89: 101376,
    90: 232448,
    100: 232448,
    103: 232448,
    110: 232448,
    120: 101376,
    121: 101376,
}
_HIP_SHARED = {"gfx950": 163840, "gfx125": 327680}
_HIP_USUAL = 65536
_CUDA_USUAL = 101376


@dataclass(frozen=True, slots=True)
class Target:
    """A device to compile for.

    Attributes:
        kind: ``cuda`` or ``hip``.
        arch: Compute capability as ``90``, or AMD's name as ``gfx942``.
        max_shared: Bytes of shared memory that a program may use.
    """

    kind: str
    arch: str
    max_shared: int


def describe_target(kind: str, arch: Any) -> Target:
    """Describe the target of a compile, from the device if it is the active one.

    Args:
        kind: ``cuda`` or ``hip``.
        arch: As Triton names it.
    """
    name = str(arch).partition(":")[0]
    return Target(kind, name, _active_max_shared(kind, name) or _usual_max_shared(kind, name))


def _active_max_shared(kind: str, arch: str) -> int | None:
    from triton.runtime import driver

    try:
        target = driver.active.get_current_target()
        if (target.backend, str(target.arch).partition(":")[0]) != (kind, arch):
            return None
        device = driver.active.get_current_device()
        return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])
    except Exception:  # noqa: BLE001 - no driver here: Triton raises whatever its driver meets
        return None


def _usual_max_shared(kind: str, arch: str) -> int:
    if kind == "cuda":
        return _CUDA_SHARED.get(int(arch) if arch.isdigit() else 0, _CUDA_USUAL)
    return next(
        (size for prefix, size in _HIP_SHARED.items() if arch.startswith(prefix)), _HIP_USUAL
    )


# Alignment of a launch's buffer in bytes.
SCRATCH_ALIGNMENT = 128
_LEAST_SCRATCH = 1  # the pass makes it as large as it needs
_AMPLE_SHARED = 1 << 26  # bytes; no device has as many


def add_ttgir_passes(
    pm: Any, settings: Settings, target: Target, *, room_bytes: int | None = None
) -> None:
    """Add the passes that turn records of TTGIR into stores of clock values.

    Args:
        pm: ``ir.pass_manager`` of Triton's bindings.
        settings: Options of the mode.
        target: Device to compile for.
        room_bytes: What the records of a program need; None: the pass takes what there is. A
            size that the settings name goes first.
    """
    from triton._C.libtriton import passes, proton

    strategy = "selective" if settings.warp_ids else "none"
    proton.add_convert_proton_to_protongpu(  # the bindings take their arguments by place only
        pm,
        _choice(proton.METRIC_TYPE, settings.metric_type),
        _choice(proton.SAMPLING_STRATEGY, strategy),
        ",".join(str(warp) for warp in settings.warp_ids),
        _choice(proton.GRANULARITY, settings.granularity),
        _choice(proton.BUFFER_STRATEGY, settings.buffer_strategy),
        _choice(proton.BUFFER_TYPE, settings.buffer_type),
        settings.buffer_size or room_bytes or 0,
        _shared_limit(settings, target),
        _LEAST_SCRATCH,
        SCRATCH_ALIGNMENT,
        settings.wide_clock,
    )
    passes.common.add_cse(pm)
    if "sched_stores" in settings.optimizations:
        proton.add_schedule_buffer_store(pm)
    proton.add_allocate_proton_shared_memory(pm)
    if "sched_barriers" in settings.optimizations and target.kind == "hip":
        proton.add_sched_barriers(pm)


def add_llvm_passes(pm: Any, target: Target) -> None:
    """Add the passes that turn those stores into instructions of the device.

    Args:
        pm: ``ir.pass_manager`` of Triton's bindings.
        target: Device to compile for.
    """
    from triton._C.libtriton import proton

    # From 3.9 on Triton lays out the buffer itself.
    lay_out = getattr(proton, "add_allocate_proton_global_scratch_buffer", None)
    if lay_out is not None:
        lay_out(pm)
    if target.kind == "cuda":
        proton.add_convert_proton_nvidia_gpu_to_llvm(pm)
    else:
        proton.add_convert_proton_amd_gpu_to_llvm(pm, target.arch)


def _shared_limit(settings: Settings, target: Target) -> int:
    """Return the shared memory that the pass may use, in bytes.

    Where several programs fit a multiprocessor it gives records no more than 4 % of it, however
    much was asked for. Who asks gets it: `check_space` holds the kernel to the device's limit.
    """
    return _AMPLE_SHARED if settings.buffer_size else target.max_shared


def _choice(choices: Any, name: str) -> Any:
    return getattr(choices, name.upper())


_RECORD = re.compile(r"\s*proton\.(record|event)\b")
# The nesting of regions does not show where this control flow may return to.
_UNSTRUCTURED = re.compile(r"^\s*(\^bb\d+|cf\.(cond_)?br\b|cf\.switch\b)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*tt\.func\b", re.MULTILINE)
_CONSTANT = re.compile(r"^\s*(%\S+) = arith\.constant (-?\d+) : (?:i32|i64|index)\b", re.MULTILINE)
_FOR = re.compile(r"scf\.for (?:unsigned )?%\S+ = (%\S+) to (%\S+) step (%\S+)")
_LOOP = re.compile(r"\bscf\.(while|forall|parallel)\b|^\s*\} do \{")
_MOST = 1 << 20  # beyond that no buffer holds them


@dataclass(frozen=True, slots=True)
class _Region:
    """A region between two braces: how often it runs, None if only the device knows."""

    times: int | None


# A buffer need not be larger than the records of one run, and each program copies its whole buffer
# to global memory at its end: for a short program, this is most of what records cost.
def most_records(text: str) -> int | None:
    """Return the most records that a warp writes in one run.

    Args:
        text: TTGIR without locations.

    Returns:
        The number; None if it depends on the kernel's arguments.
    """
    if _UNSTRUCTURED.search(text) or len(_FUNCTION.findall(text)) > 1:
        return None
    constants = {match[1]: int(match[2]) for match in _CONSTANT.finditer(text)}
    regions: list[_Region] = []
    count = 0
    for line in text.splitlines():
        if _RECORD.match(line):
            times = _product(regions)
            if times is None or count + times > _MOST:
                return None
            count += times
            continue
        stripped = line.strip()
        if stripped.startswith("}") and regions:
            regions.pop()
        if stripped.endswith("{"):
            regions.append(_Region(_times(line, constants)))
    return count


def _product(regions: list[_Region]) -> int | None:
    product = 1
    for region in regions:
        if region.times is None:
            return None
        product *= region.times
    return product


def _times(line: str, constants: dict[str, int]) -> int | None:
    loop = _FOR.search(line)
    if loop is not None:
        first, last, step = (constants.get(name) for name in loop.groups())
        if first is None or last is None or step is None or step <= 0:
            return None
        return max(0, -(-(last - first) // step))
    return None if _LOOP.search(line) else 1


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


# Results of passes on a kernel, kept with it in Triton's cache.
LEFT_OUT = "scopes_left_out"
TAKEN = "passes_taken"
_Stage = Callable[[Any, dict[str, Any]], Any]


class Inserting(Protocol):
    """Puts records into kernels, as ``passes.Inserter`` does."""

    @property
    def digest(self) -> str:
        """A text that identifies the inserted records."""

    def insert(self, module: Any, *, kernel: str) -> Any:
        """Insert records into TTGIR."""


class _Compile(threading.local):
    """The current compile of this thread."""

    target: Target | None = None
    passes: KernelPasses | None = None
    room_bytes: int | None = None


class Stages:
    """Triton's hook for stages, and the callbacks for passes, of one mode.

    Args:
        mode: Text in the options of the compiles that are meant.
        settings: Options of the mode.
        inserter: Puts further records into each kernel.
    """

    def __init__(self, mode: str, settings: Settings, inserter: Inserting | None) -> None:
        self._mode = mode
        self._settings = settings
        self._inserter = inserter
        self._older: Callable[..., Any] | None = None
        self._compile = _Compile()
        self._key = (mode, hashlib.sha256(mode.encode()).hexdigest())

    def chain(self, older: Callable[..., Any] | None) -> None:
        """Call another hook first from now on."""
        self._older = older

    def __call__(  # noqa: PLR0917 - Triton's signature
        self,
        backend: Any = None,
        stages: dict[str, _Stage] | None = None,
        options: Any = None,
        language: Any = None,
        capability: Any = None,
    ) -> tuple[str, str] | None:
        """Wrap the stages of a compile, or return their part of its key."""
        if stages is None:
            return self._full_key()
        if self._older is not None:
            self._older(backend, stages, options, language, capability)
        if str(getattr(options, "instrumentation_mode", "")).startswith(self._mode):
            target = describe_target(backend.target.backend, backend.target.arch)
            if "ttgir" in stages:
                stages["ttgir"] = self._inserting(stages["ttgir"])
            stages["llir"] = self._lowering(stages["llir"], target)
        return None

    def load_dialects(self, context: Any) -> None:
        """Make the dialects of records known to a context."""
        from triton._C.libtriton import proton

        proton.load_dialects(context)

    def lower_ttgir(self, pm: Any, backend: str) -> None:
        """Add passes before TTGIR becomes LLVM's dialect."""
        if self._compile.target is None:
            return
        if self._compile.passes is not None:
            self._compile.passes.lower_ttgir(pm, backend, self._compile.target.arch)
        else:
            add_ttgir_passes(
                pm, self._settings, self._compile.target, room_bytes=self._compile.room_bytes
            )

    def lower_llvm(self, pm: Any, backend: str) -> None:
        """Add passes after it."""
        if self._compile.target is None:
            return
        if self._compile.passes is not None:
            self._compile.passes.lower_llvm(pm, backend, self._compile.target.arch)
        else:
            add_llvm_passes(pm, self._compile.target)

    def _full_key(self) -> tuple[str, str]:
        if self._older is None:
            return self._key
        key, digest = self._older()
        return f"{key}{self._key[0]}", f"{digest}{self._key[1]}"

    def _inserting(self, inner: _Stage) -> _Stage:
        def stage(source: Any, metadata: dict[str, Any]) -> Any:
            module = inner(source, metadata)
            kernel = _name(module)
            self.load_dialects(module.context)
            if self._settings.custom is not None:
                passes = self._settings.custom.passes(self._settings.custom_options)
                module = passes.rewrite(module, kernel)
            elif self._inserter is not None:
                inserted = self._inserter.insert(module, kernel=kernel)
                if left_out := len(getattr(inserted, "left_out", ())):
                    metadata[LEFT_OUT] = left_out
                metadata[TAKEN] = ",".join(getattr(inserted, "taken", ()))
            return module

        return stage

    def _lowering(self, inner: _Stage, target: Target) -> _Stage:
        def stage(module: Any, metadata: dict[str, Any]) -> Any:
            if self._settings.custom is not None:
                passes = self._settings.custom.passes(self._settings.custom_options)
                with self._at_work(target, passes):
                    return inner(module, metadata)
            text = module.str_nodebug()
            if not has_records(text):
                return inner(module, metadata)
            kernel = _name(module)
            check_records(text, kernel, self._settings)
            room_bytes = needed_bytes(text, self._settings)
            with (
                self._at_work(target, room_bytes=room_bytes),
                _rejections(kernel, self._settings),
            ):
                lowered = inner(module, metadata)
            check_warps(int(metadata["num_warps"]), kernel, self._settings)
            check_space(kernel, metadata, target, settings=self._settings)
            return lowered

        return stage

    @contextmanager
    def _at_work(
        self,
        target: Target,
        passes: KernelPasses | None = None,
        room_bytes: int | None = None,
    ) -> Iterator[None]:
        at_work = self._compile
        at_work.target, at_work.passes, at_work.room_bytes = target, passes, room_bytes
        try:
            yield
        finally:
            at_work.target = at_work.passes = at_work.room_bytes = None


@contextmanager
def _rejections(kernel: str, settings: Settings) -> Iterator[None]:
    try:
        yield
    except ProtonError:
        raise
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        if settings.buffer_size:
            reason += (
                "; buffer_size must be a power of two per recording warp, which in a "
                "warp-specialized kernel are the warps of all partitions"
            )
        raise UsageError(
            f"kernel {kernel!r} cannot be compiled with records in mode {settings.mode!r} "
            f"(buffer_type={settings.buffer_type}, buffer_size={settings.buffer_size}): {reason}; "
            "the compiler's own message is above, on stderr"
        ) from error


def _name(module: Any) -> str:
    return str(module.get_entry_func_name())
