"""The kernels of a study with their data, on a GPU or tiny in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import triton_kernels as kernels
from benchmarks.studies.gate.study.plan import SLOWDOWNS, Work

__all__ = ["CanaryLaunches", "Sizes", "flush_of", "make_works"]

# More than twice the second level cache of any GPU so far.
_FLUSHED_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large everything is.

    Attributes:
        steps: Iterations of most loops.
        chained: Iterations of the small elementwise kernel, which is short.
        multiplied: Iterations of the FMA loop. No number here is a multiple of 16: Triton compiles
            such arguments into the code.
        tile: Side of a tile of the product.
        grid: Tiles of the product in both directions; one wave on 132 multiprocessors.
        programs: Programs of kernels that stream through memory.
        width: Elements that one of these handles in an iteration.
        heads: Heads of attention, of 16 tiles of queries each.
    """

    steps: int = 100
    chained: int = 200
    multiplied: int = 9999
    tile: int = 128
    grid: tuple[int, int] = (11, 12)
    programs: int = 264
    width: int = 1024
    heads: int = 8

    @classmethod
    def tiny(cls) -> Sizes:
        """Return sizes for the interpreter."""
        return cls(
            steps=2, chained=2, multiplied=2, tile=16, grid=(1, 1), programs=1, width=16, heads=1
        )

    @property
    def longest(self) -> int:
        """Iterations of the most slowed variant."""
        return self.steps + max(1, round(self.steps * max(SLOWDOWNS)))


def make_works(sizes: Sizes, device: str) -> list[Work]:
    """Return all kernels, with data for their longest variants."""
    torch.manual_seed(0)
    makers = (_gemm, _softmax, _layer_norm, _attention, _elementwise, _reduction, _copy, _fma)
    return [make(sizes, device) for make in makers]


def flush_of(device: str) -> Callable[[], None]:
    """Return a function that empties the cache of a device."""
    if device != "cuda":
        return lambda: None
    large = torch.empty(_FLUSHED_BYTES, dtype=torch.int8, device=device)

    def flush() -> None:
        large.zero_()

    return flush


class CanaryLaunches:
    """The FMA loop that measures the SM clock: cycles over the global timer.

    Args:
        sizes: How large.
        device: Where.
        launches: How often it will be launched.
    """

    def __init__(self, sizes: Sizes, device: str, launches: int) -> None:
        self._sizes, self._clocked = sizes, device == "cuda"
        self._programs = sizes.grid[0] * sizes.grid[1]
        shape = (launches + 1, self._programs, 2)
        self._clocks = torch.zeros(shape, dtype=torch.int64, device=device)
        self._data, self._out = _fma_data(sizes, device)
        self._next = 0

    def launch(self) -> None:
        """Run it once."""
        kernels.fma[(self._programs,)](
            self._data, self._out, self._clocks[self._next], self._sizes.multiplied,
            EXTRA=0, BLOCK=32, CLOCKED=self._clocked, num_warps=1,
        )  # fmt: skip
        self._next = min(self._next + 1, len(self._clocks) - 1)

    def reset(self) -> None:
        """Forget launches that were for warming up."""
        self._clocks.zero_()
        self._next = 0

    def sm_clock_hz(self) -> float | None:
        """Return all cycles over all ns, which ticks do not bias; None if not measured."""
        cycles, ns = self._clocks.sum(dim=(0, 1)).tolist()
        return 1e9 * cycles / ns if cycles > 0 and ns > 0 else None


def _gemm(sizes: Sizes, device: str) -> Work:
    rows, columns, depth = sizes.tile * sizes.grid[0], sizes.tile * sizes.grid[1], 64
    depth = min(depth, sizes.tile)
    inner = sizes.longest * depth
    a, b = _random((rows, inner), device), _random((inner, columns), device)
    out = _random((rows, columns), device)

    def launch(extra: int) -> None:
        kernels.gemm[sizes.grid](
            a, b, out, inner, columns, sizes.steps,
            EXTRA=extra, TILE=sizes.tile, K=depth, num_warps=8,
        )  # fmt: skip

    return Work("gemm", sizes.steps, launch)


def _softmax(sizes: Sizes, device: str) -> Work:
    launch = _streaming(kernels.softmax, sizes, _stream(sizes, device), width="WIDTH")
    return Work("softmax", sizes.steps, launch, cold=True)


def _layer_norm(sizes: Sizes, device: str) -> Work:
    data, out = _stream(sizes, device)
    weight, bias = (torch.rand(sizes.width, device=device) for _ in range(2))

    def launch(extra: int) -> None:
        kernels.layer_norm[(sizes.programs,)](
            data, out, weight, bias, sizes.steps, EXTRA=extra, WIDTH=sizes.width
        )

    return Work("layer_norm", sizes.steps, launch, cold=True)


def _attention(sizes: Sizes, device: str) -> Work:
    tile, tiles = min(64, sizes.tile), 16
    length = tile * max(sizes.longest, tiles)
    q, k, v, out = (_random((sizes.heads, length, tile), device) for _ in range(4))

    def launch(extra: int) -> None:
        kernels.attend[(tiles if sizes.heads > 1 else 1, sizes.heads)](
            q, k, v, out, length, sizes.steps, EXTRA=extra, TILE=tile, DEPTH=tile, num_warps=4
        )

    return Work("attention", sizes.steps, launch)


def _elementwise(sizes: Sizes, device: str) -> Work:
    data, out = (torch.rand(64 * 256, device=device) for _ in range(2))

    def launch(extra: int) -> None:
        kernels.chain[(min(64, sizes.programs),)](
            data, out, sizes.chained, EXTRA=extra, BLOCK=256, num_warps=4
        )

    return Work("elementwise", sizes.chained, launch)


def _reduction(sizes: Sizes, device: str) -> Work:
    programs, block = 4, 4 * sizes.width
    data = torch.rand(programs * sizes.longest * block, device=device)
    out = torch.empty(programs, device=device)

    def launch(extra: int) -> None:
        kernels.reduce[(programs,)](data, out, sizes.steps, EXTRA=extra, BLOCK=block)

    return Work("reduction", sizes.steps, launch, cold=True)


def _copy(sizes: Sizes, device: str) -> Work:
    launch = _streaming(kernels.copy, sizes, _stream(sizes, device), width="BLOCK")
    return Work("copy", sizes.steps, launch, cold=True)


def _fma(sizes: Sizes, device: str) -> Work:
    data, out = _fma_data(sizes, device)
    clocks = torch.zeros(2 * sizes.grid[0] * sizes.grid[1], dtype=torch.int64, device=device)

    def launch(extra: int) -> None:
        kernels.fma[(sizes.grid[0] * sizes.grid[1],)](
            data, out, clocks, sizes.multiplied,
            EXTRA=extra, BLOCK=32, CLOCKED=device == "cuda", num_warps=1,
        )  # fmt: skip

    return Work("fma", sizes.multiplied, launch)


def _streaming(
    kernel: Any, sizes: Sizes, data: tuple[torch.Tensor, torch.Tensor], *, width: str
) -> Callable[[int], None]:
    def launch(extra: int) -> None:
        kernel[(sizes.programs,)](*data, sizes.steps, EXTRA=extra, **{width: sizes.width})

    return launch


def _stream(sizes: Sizes, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    elements = sizes.programs * sizes.longest * sizes.width
    return torch.rand(elements, device=device), torch.empty(elements, device=device)


def _fma_data(sizes: Sizes, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    elements = 32 * sizes.grid[0] * sizes.grid[1]
    return torch.rand(elements, device=device), torch.empty(elements, device=device)


def _random(shape: tuple[int, ...], device: str) -> torch.Tensor:
    return torch.randn(shape, device=device, dtype=torch.float16)
