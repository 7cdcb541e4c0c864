"""The collector of the backend: makes kernels compile with records, and collects these."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from proton_bench.recording.kernels.hooks import TritonHeads
from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook, pack_header
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.stderr import warn
from proton_bench_plugins.instrumentation.calibration import KERNEL
from proton_bench_plugins.instrumentation.compiler.activation import Compilation, dropped_maxnreg
from proton_bench_plugins.instrumentation.compiler.scope_table import (
    KernelScopes,
    read_registers,
    read_scopes,
)
from proton_bench_plugins.instrumentation.compiler.stages import (
    LEFT_OUT,
    TAKEN,
    Inserting,
)
from proton_bench_plugins.instrumentation.passes.listing import unused_passes, without_scopes
from proton_bench_plugins.instrumentation.passes.parsing import parse_passes
from proton_bench_plugins.instrumentation.passes.rule import Rule
from proton_bench_plugins.instrumentation.runtime import Runtime, open_runtime
from proton_bench_plugins.instrumentation.settings import Settings

_RECORD = re.compile(r"^[ \t]*proton\.(record|event)\b.*\n", re.MULTILINE)
_EVENT = re.compile(r'^([ \t]*%\S+ = )proton\.allocate_event "(?:[^"\\]|\\.)*" : i32', re.MULTILINE)
_OWN = {"hash", "target", "instrumentation_mode", "ir_override", "maxnreg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainKernel:
    """A kernel without records.

    Attributes:
        registers: Registers of a thread, None if the binary does not say.
        shared: Bytes of shared memory of a program.
    """

    registers: int | None
    shared: int


def strip_records(text: str) -> str:
    """Return TTGIR without its records and events.

    Args:
        text: TTGIR.
    """
    return _EVENT.sub(r"\1arith.constant 0 : i32", _RECORD.sub("", text))


def compile_plain(ttgir: Path, metadata: dict[str, Any], maxnreg: int | None) -> PlainKernel:
    """Compile a kernel without its records; Triton's cache has it the second time.

    Args:
        ttgir: The kernel's TTGIR with records.
        metadata: Its metadata.
        maxnreg: Limit of registers that it would have without records.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    target = metadata["target"]
    options = {key: _frozen(value) for key, value in metadata.items() if key not in _OWN}
    with tempfile.TemporaryDirectory(prefix="proton_bench") as folder:
        path = Path(folder, ttgir.name)
        path.write_text(strip_records(ttgir.read_text(encoding="utf-8")), encoding="utf-8")
        kernel = triton.compile(
            str(path),
            target=GPUTarget(target["backend"], target["arch"], target["warp_size"]),
            options={**options, "instrumentation_mode": "", "maxnreg": maxnreg},
        )
    binary = next((p for n, p in kernel.metadata_group.items() if n.endswith(".cubin")), "")
    return PlainKernel(registers=read_registers(Path(binary)), shared=int(kernel.metadata.shared))


def _frozen(value: Any) -> Any:
    """Options are hashed, and JSON made lists of tuples."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


# Most kernels to compile again at the end of the session, to limit the wait.
_MOST_COMPARED = 16


@dataclass(slots=True)
class _Noted:
    scopes: KernelScopes
    plain: PlainKernel | None = None
    is_compared: bool = False


class KernelCosts:
    """The loaded kernels with records, and their needs without.

    Args:
        settings: Options of the mode.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kernels: dict[str, _Noted] = {}

    @property
    def has_kernels(self) -> bool:
        """Whether a kernel with records was noted."""
        return bool(self._kernels)

    def note(self, scopes: KernelScopes) -> None:
        """Note a loaded kernel.

        Args:
            scopes: The kernel.
        """
        self._kernels.setdefault(str(scopes.metadata_path), _Noted(scopes))

    def facts(self) -> list[dict[str, Any]]:
        """Return one entry per kernel, compiling it without records if allowed."""
        if self._settings.compare and self._settings.custom is None:
            for noted in [*self._kernels.values()][:_MOST_COMPARED]:
                _compare(noted)
        return [_entry(noted) for noted in self._kernels.values()]

    def remark(self) -> str | None:
        """Return which limits of registers were dropped, or None."""
        dropped = {
            noted.scopes.name: limit
            for noted in self._kernels.values()
            if (limit := dropped_maxnreg(noted.scopes.mode)) is not None
        }
        if not dropped:
            return None
        kernels = ", ".join(f"{name} ({limit})" for name, limit in dropped.items())
        return f"Triton drops maxnreg of kernels with records; it did for {kernels}"


def _compare(noted: _Noted) -> None:
    if noted.is_compared:
        return
    noted.is_compared = True
    try:
        metadata = json.loads(noted.scopes.metadata_path.read_text(encoding="utf-8"))
        limit = dropped_maxnreg(noted.scopes.mode)
        noted.plain = compile_plain(noted.scopes.ttgir_path, metadata, limit)
    except Exception:  # noqa: BLE001 - only a comparison: Triton raises whatever it meets
        noted.plain = None


def _entry(noted: _Noted) -> dict[str, Any]:
    scopes, plain = noted.scopes, noted.plain
    entry = {
        "name": scopes.name,
        "scopes": len(scopes.names),
        "warps": scopes.num_warps,
        "arch": str(scopes.target["arch"]),
        "registers": scopes.registers,
        "shared_bytes": scopes.shared,
        "scratch_bytes_per_program": scopes.profile_scratch_size,
        "plain_registers": plain.registers if plain else None,
        "plain_shared_bytes": plain.shared if plain else None,
        "dropped_maxnreg": dropped_maxnreg(scopes.mode),
    }
    return {key: value for key, value in entry.items() if value is not None}


class InstrumentationCollector:
    """Records what scopes inside kernels measure, from ``start`` on.

    Args:
        settings: Options of the mode.
        runtime: Collects buffers of kernels; None opens the mode's own.
    """

    def __init__(self, settings: Settings, runtime: Runtime | None = None) -> None:
        self._settings = settings
        self._runtime = runtime if runtime is not None else open_runtime(settings)
        self._rules = parse_passes(settings.passes) if settings.passes else ()
        self._compilation = Compilation(settings, _inserter(self._rules))
        self._costs = KernelCosts(settings)
        self._heads = TritonHeads(
            {
                "kernel_load_end_hook": self._loaded,
                "kernel_unload_hook": self._unloaded,
                "launch_exit_hook": self._runtime.launch_exit,
            }
        )
        # By function: backend, warps, and bytes of a program in the buffer of a launch.
        self._buffers: dict[int, tuple[str, int, int]] = {}
        self._left_out: dict[str, int] = {}
        self._ran: dict[str, None] = {}  # kernels of this mode, in order
        self._bare: dict[str, None] = {}  # those of them without a record
        self._taken: set[str] = set()  # rules whose filters took an operation
        self._undo = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to collect; on an exception nothing is left switched on."""
        with contextlib.ExitStack() as undo:
            self._runtime.start()
            undo.callback(self._runtime.stop)
            undo.callback(InstrumentationHook.announce())
            self._keep_buffers(InstrumentationHook.enable_host_buffer)
            InstrumentationHook.followers.append(self._keep_buffers)
            undo.callback(InstrumentationHook.followers.remove, self._keep_buffers)
            if "triton" in sys.modules and not _is_importing("triton"):
                self._attach(undo)
            else:
                undo.callback(ImportCallback("triton", self._attach_later).cancel)
            self._undo = undo.pop_all()

    def flush(self) -> None:
        """Record all work launched before this call."""
        self._runtime.flush()

    def stop(self) -> None:
        """Stop collecting, and compile kernels as usual."""
        self._undo.close()

    def facts(self) -> dict[str, Any]:
        """Return the mode, facts of the runtime, and the costs of records for each kernel."""
        return {
            "instrumentation_mode": self._compilation.mode,
            **_described(self._settings),
            # Records make a kernel slower, so its time is not that of the plain one.
            "kernel_times_perturbed": True,
            **self._runtime.facts(),
            "kernels": self._costs.facts(),
            **({LEFT_OUT: dict(self._left_out)} if self._left_out else {}),
        }

    def remark(self, counts: Mapping[str, int]) -> str | None:
        """Return which passes recorded nothing and why, and costs of records, or None."""
        del counts
        why = unused_passes(self._rules, [*self._ran], self._taken)
        if self._bare and not (self._rules or self._costs.has_kernels):
            why = without_scopes([*self._bare])
        return "; ".join(filter(None, [why, self._costs.remark()])) or None

    def _attach(self, undo: contextlib.ExitStack) -> None:
        from triton.runtime import _allocation

        self._compilation.attach()
        undo.callback(self._compilation.detach)
        undo.callback(_set_allocator(_allocation, self._runtime.allocator))
        self._heads.attach()
        undo.callback(self._heads.detach)
        self._note_loaded()

    def _attach_later(self, module: ModuleType) -> None:
        del module
        try:
            self._attach(self._undo)
        except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
            warn(f"kernels are compiled without records: {type(error).__name__}: {error}")

    def _note_loaded(self) -> None:
        """Note kernels of this mode that an earlier session had loaded."""
        kernel_type = getattr(sys.modules.get("triton.compiler.compiler"), "CompiledKernel", None)
        for each in gc.get_objects() if kernel_type is not None else ():
            if type(each) is kernel_type and getattr(each, "function", None):
                self._loaded(each.module, each.function, each.name, each.metadata_group, each.hash)

    def _loaded(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        del module, hash
        try:
            scopes = self._read(function, metadata_group)
            if scopes is None:
                self._runtime.add_plain(function)
                return
            backend, scratch_bytes = str(scopes.target["backend"]), scopes.profile_scratch_size
            self._buffers[function] = (backend, scopes.num_warps, scratch_bytes)
            self._runtime.add_kernel(function, scopes)
            if name != KERNEL:
                self._costs.note(scopes)
        except Exception as error:  # noqa: BLE001 - a launch of the target must not fail because of us
            self._runtime.add_plain(function)  # else its launches keep their buffers until the end
            warn(f"scopes of kernel {name!r} are not recorded: {type(error).__name__}: {error}")

    def _unloaded(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        del module, name, metadata_group, hash
        self._buffers.pop(function, None)
        self._runtime.remove_kernel(function)

    def _keep_buffers(self, keeps: bool) -> None:  # noqa: FBT001 - a switch
        head = self._keep_and_exit if keeps else self._runtime.launch_exit
        self._heads.replace("launch_exit_hook", head)

    def _keep_and_exit(self, metadata: Any) -> None:
        """Keep the buffer of the launch, then end the launch."""
        InstrumentationHook.host_buffer = None
        try:
            stream = metadata.data.get("stream") or 0
            InstrumentationHook.host_buffer = self._host_buffer(metadata.data["function"], stream)
        except Exception as error:  # noqa: BLE001 - a launch of the target must not fail because of us
            warn(
                f"no host buffer of {metadata.data.get('name')!r}: {type(error).__name__}: {error}"
            )
        self._runtime.launch_exit(metadata)

    def _host_buffer(self, function: int, stream: int) -> Any:
        if function not in self._buffers:
            return None
        device, warps, scratch_bytes = self._buffers[function]
        payload = self._runtime.read_records(stream) if scratch_bytes else b""
        if payload is None:
            return None
        import torch

        header = pack_header(
            len(payload),
            device=device,
            warps=warps,
            scratch_bytes=scratch_bytes,
            warp_ids=self._settings.warp_ids,
        )
        return torch.frombuffer(bytearray(header + payload), dtype=torch.uint8)

    def _read(self, function: int, metadata_group: Mapping[str, str]) -> KernelScopes | None:
        """Read a kernel of this mode that has records; None for any other."""
        paths = {Path(path).suffix: path for path in metadata_group.values()}
        metadata = json.loads(Path(paths[".json"]).read_text(encoding="utf-8"))
        mode = str(metadata.get("instrumentation_mode") or "")
        if not mode.startswith(self._compilation.mode):
            return None
        name = str(metadata.get("name"))
        if name != KERNEL:
            self._ran[name] = None
            self._taken.update(filter(None, str(metadata.get(TAKEN, "")).split(",")))
        if not metadata.get("profile_scratch_size"):
            self._bare[name] = None
            backend = str(metadata["target"]["backend"])
            self._buffers[function] = (backend, int(metadata["num_warps"]), 0)
            return None
        if LEFT_OUT in metadata:
            self._left_out[name] = int(metadata[LEFT_OUT])
        if ".ttgir" not in paths:
            raise ValueError(
                "Triton did not keep its TTGIR, which names the scopes: unset "
                "TRITON_STORE_BINARY_ONLY"
            )
        return read_scopes(paths[".ttgir"], paths[".json"])


def _set_allocator(allocation: Any, ours: Any) -> Callable[[], None]:
    """Make Triton allocate buffers from us; returns a function that undoes it."""
    before = allocation._profile_allocator.get()

    def restore() -> None:
        if allocation._profile_allocator.get() is ours:
            allocation.set_profile_allocator(before)

    allocation.set_profile_allocator(ours)
    return restore


def _inserter(rules: tuple[Rule, ...]) -> Inserting | None:
    if not rules:
        return None
    from proton_bench_plugins.instrumentation.passes import Inserter

    return Inserter(rules)


def _described(settings: Settings) -> dict[str, Any]:
    described = {
        "mode": settings.mode,
        "buffer_type": settings.buffer_type,
        "buffer_size": settings.buffer_size,
        "warps": list(settings.warp_ids),
        "optimizations": list(settings.optimizations),
        "passes": settings.passes,
    }
    return {key: value for key, value in described.items() if value not in ([], "")}


def _is_importing(name: str) -> bool:
    return bool(getattr(sys.modules[name].__spec__, "_initializing", False))
