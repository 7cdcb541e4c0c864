"""Modes of plugins for the ``instrumentation`` backend: passes, a reader and its metrics.

A mode has compiler passes, which may write anything into the buffer of each launch, and a reader
that turns the buffer into metrics. See docs/how-to/kernel_modes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class KernelPasses(Protocol):
    """The passes of a mode; created for each compile."""

    def rewrite(self, module: Any, kernel: str) -> Any:
        """Change a kernel's TTGIR; all operations of the compiler may be used.

        Args:
            module: ``ir.module`` of Triton's bindings.
            kernel: Name of the kernel.

        Returns:
            The module, or another one in the same context.
        """

    def lower_ttgir(self, pm: Any, backend: str, arch: str) -> None:
        """Add passes before TTGIR becomes LLVM's dialect.

        Args:
            pm: ``ir.pass_manager`` of Triton's bindings.
            backend: ``nvidia`` or ``amd``.
            arch: Architecture, e.g. ``90`` or ``gfx942``.
        """

    def lower_llvm(self, pm: Any, backend: str, arch: str) -> None:
        """Add passes after it.

        Args:
            pm: ``ir.pass_manager`` of Triton's bindings.
            backend: ``nvidia`` or ``amd``.
            arch: Architecture, e.g. ``90`` or ``gfx942``.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuffer:
    """The buffer of one launch of a kernel.

    Attributes:
        kernel: Name of the kernel.
        data: The buffer; zero where the kernel wrote nothing.
        bytes_per_program: Size of the part of each program, in the order of linear program ids.
        metadata: Triton's facts about the compiled kernel: ``num_warps``, ``shared``, ...
        ir: The kernel's TTGIR, e.g. to find notes of a pass in attributes or locations.
    """

    kernel: str
    data: memoryview
    bytes_per_program: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ir: str = ""


@dataclass(frozen=True, slots=True)
class KernelMetric:
    """A metric that a reader may return.

    Attributes:
        name: Name, with its unit in parentheses if it has one.
        kind: ``inc``: summed into the frames above; ``exc``: of its frame alone; ``pty``: the last
            value counts.
    """

    name: str
    kind: str = "inc"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMode:
    """A mode, named in ``-m`` and ``start(mode=...)``.

    Attributes:
        name: First word of the mode text.
        summary: One line for ``proton doctor``.
        version: Part of the key of compiled kernels: change it when the passes change.
        options: Documentation of each option by its name.
        passes: Makes the passes of one compile from the values of the options.
        reader: Makes (metric, value) of a launch's buffer, for the kernel's frame.
        metrics: The metrics that it may return.
    """

    name: str
    summary: str
    version: str
    options: Mapping[str, str] = field(default_factory=dict)
    passes: Callable[[Mapping[str, str]], KernelPasses]
    reader: Callable[[KernelBuffer], Iterable[tuple[str, float]]]
    metrics: tuple[KernelMetric, ...] = ()
