"""The works: data, a launch, and the expected results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import triton

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel with its data.

    Attributes:
        kernel: Name of the kernel.
        launch: Launches it and returns its results.
        expected: Returns the expected results.
        passes: Operations that get scopes; "" if the source has scopes.
        scopes: Instances of each scope in one launch; empty if not counted.
        tolerance: Largest difference, absolute and relative alike.
    """

    kernel: str
    launch: Callable[[], tuple[Any, ...]]
    expected: Callable[[], tuple[Any, ...]]
    passes: str = ""
    scopes: Mapping[str, int] = field(default_factory=dict)
    tolerance: float = 1e-2

    def matches(self, results: tuple[Any, ...]) -> bool:
        """Return whether results are the expected ones."""
        return all(
            torch.allclose(one.float(), other.float(), rtol=self.tolerance, atol=self.tolerance)
            for one, other in zip(results, self.expected(), strict=True)
        )


@dataclass(frozen=True, slots=True)
class Sizes:
    """Full sizes for a GPU, tiny ones for the interpreter."""

    device: str
    tiny: bool

    def pick(self, full: int, tiny: int) -> int:
        """Return one of two sizes."""
        return tiny if self.tiny else full

    def random(self, *shape: int, dtype: torch.dtype = torch.float16) -> Any:
        """Return normal random numbers whose products stay small."""
        return torch.randn(shape).to(self.device, dtype)


def product_data(sizes: Sizes, full: int) -> tuple[Any, Any, Any, int]:
    """Return two matrices, room for their product, and the size."""
    size = sizes.pick(full, 32)
    a = sizes.random(size, size) / size**0.5
    b = sizes.random(size, size)
    return a, b, torch.empty_like(a), size


def matmul(sizes: Sizes) -> Work:
    """Three scopes, 256 programs: what one launch costs."""
    from benchmarks.instrumentation.kernels import scoped_matmul

    a, b, c, size = product_data(sizes, 2048)
    tile, tile_k = sizes.pick(128, 16), sizes.pick(64, 16)
    warps = sizes.pick(8, 1)

    def launch() -> tuple[Any, ...]:
        grid = (size // tile, size // tile)
        scoped_matmul[grid](
            c, a, b, size, size, TILE=tile, TILE_K=tile_k, num_warps=warps, num_stages=1
        )
        return (c,)

    programs = (size // tile) ** 2
    loops = programs * warps * (size // tile_k)
    scopes = {"load": loops, "dot": loops, "store": programs * warps}
    return Work("scoped_matmul", launch, lambda: (a @ b,), scopes=scopes)


def short(sizes: Sizes) -> Work:
    """A kernel shorter than a profiler's work per launch."""
    from benchmarks.instrumentation.kernels import short as kernel

    x = sizes.random(4096, dtype=torch.float32)
    out = torch.empty_like(x)

    def launch() -> tuple[Any, ...]:
        kernel[(4,)](out, x, BLOCK=1024)
        return (out,)

    warps = 1 if sizes.tiny else 4
    return Work("short", launch, lambda: (x,), scopes={"copy": 4 * warps})


def softmax(sizes: Sizes) -> Work:
    """The kernel of the example, with scopes around loads and stores."""
    from softmax import softmax as rows_softmax

    x = sizes.random(sizes.pick(8192, 4), sizes.pick(4096, 64), dtype=torch.float32)
    return Work(
        "softmax_kernel",
        lambda: (rows_softmax(x),),
        lambda: (torch.softmax(x, dim=-1),),
        passes="loads,stores",
    )


def layer_norm(sizes: Sizes) -> Work:
    """The kernel of the example, with scopes around loads and stores."""
    from layer_norm import layer_norm as rows_norm

    width = sizes.pick(4096, 64)
    x, weight, bias = (
        sizes.random(*shape) for shape in ((sizes.pick(8192, 4), width), (width,), (width,))
    )
    return Work(
        "forward_kernel",
        lambda: (rows_norm(x, weight, bias),),
        lambda: (torch.nn.functional.layer_norm(x, (width,), weight, bias),),
        passes="loads,stores",
    )


def attention(sizes: Sizes) -> Work:
    """The kernel of the example, with scopes around the loop and the products."""
    from attention import attention as fused

    shape = (sizes.pick(4, 1), sizes.pick(16, 1), sizes.pick(2048, 32), sizes.pick(64, 16))
    q, k, v = (sizes.random(*shape) for _ in range(3))
    return Work(
        "attention_kernel",
        lambda: (fused(q, k, v, causal=False),),
        lambda: (torch.nn.functional.scaled_dot_product_attention(q, k, v),),
        passes="loops,dots",
    )


def plain_matmul(sizes: Sizes) -> Work:
    """The product of the gate's study, pipelined, with scopes around its loop and products."""
    from benchmarks.triton_kernels import gemm

    a, b, c, size = product_data(sizes, 4096)
    tile, tile_k = sizes.pick(128, 16), sizes.pick(64, 16)

    def launch() -> tuple[Any, ...]:
        gemm[(size // tile, size // tile)](
            *(a, b, c, size, size, size // tile_k),
            EXTRA=0,
            TILE=tile,
            K=tile_k,
            num_warps=8,
            num_stages=3,
        )
        return (c,)

    return Work("gemm", launch, lambda: (a @ b,), passes="loops,dots")


def dropout(sizes: Sizes) -> Work:
    """Elementwise, with random numbers."""
    from benchmarks.instrumentation.kernels import dropout as kernel

    size = sizes.pick(1 << 26, 1000)
    x = sizes.random(size, dtype=torch.float32)
    out = torch.empty_like(x)

    def launch() -> tuple[Any, ...]:
        kernel[(triton.cdiv(size, 4096),)](out, x, size, 0.25, 7, BLOCK=4096, num_warps=8)
        return (out,)

    def expected() -> tuple[Any, ...]:
        kept = out != 0
        share = kept.float().mean().item()
        assert abs(share - 0.75) < 0.1, f"{share} of the elements were kept"
        return (torch.where(kept, x / 0.75, 0.0),)

    return Work("dropout", launch, expected)


def swiglu(sizes: Sizes) -> Work:
    """Elementwise over two halves of a row."""
    from benchmarks.instrumentation.kernels import swiglu as kernel

    rows, columns = sizes.pick(8192, 4), sizes.pick(8192, 100)
    x = sizes.random(rows, 2 * columns)
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)

    def launch() -> tuple[Any, ...]:
        kernel[(rows, triton.cdiv(columns, 4096))](out, x, columns, BLOCK=4096, num_warps=8)
        return (out,)

    def expected() -> tuple[Any, ...]:
        gate, value = x.float().chunk(2, dim=-1)
        return (torch.nn.functional.silu(gate) * value,)

    return Work("swiglu", launch, expected)


def top_k(sizes: Sizes) -> Work:
    """The eight largest of each row."""
    from benchmarks.instrumentation.kernels import top_k as kernel

    rows, columns, count = sizes.pick(8192, 4), sizes.pick(2048, 64), 8
    x = sizes.random(rows, columns, dtype=torch.float32)
    values = torch.empty(rows, count, device=x.device)
    places = torch.empty(rows, count, device=x.device, dtype=torch.int32)

    def launch() -> tuple[Any, ...]:
        kernel[(rows,)](values, places, x, columns, COUNT=count, BLOCK=columns)
        return values, places

    def expected() -> tuple[Any, ...]:
        best = torch.topk(x, count, dim=-1)
        return best.values, best.indices

    return Work("top_k", launch, expected)


def persistent_matmul(sizes: Sizes) -> Work:
    """As many programs as there are multiprocessors."""
    from benchmarks.instrumentation.matmul_kernels import persistent_matmul as kernel

    a, b, c, size = product_data(sizes, 4096)
    tile, tile_k = sizes.pick(128, 16), sizes.pick(64, 16)
    programs = 2 if sizes.tiny else torch.cuda.get_device_properties(0).multi_processor_count

    def launch() -> tuple[Any, ...]:
        kernel[(programs,)](
            *(c, a, b, size, size, size),
            TILE=tile,
            TILE_K=tile_k,
            PROGRAMS=programs,
            num_warps=8,
            num_stages=3,
        )
        return (c,)

    return Work("persistent_matmul", launch, lambda: (a @ b,))


def grouped_matmul(sizes: Sizes) -> Work:
    """Groups of rows, each with a matrix of its own."""
    from benchmarks.instrumentation.matmul_kernels import grouped_matmul as kernel

    tile, tile_k = sizes.pick(128, 16), sizes.pick(64, 16)
    size, counts = sizes.pick(2048, 32), (3, 9, 5, 15) if not sizes.tiny else (1, 2, 1, 1)
    ends = [tile * sum(counts[:number]) for number in range(len(counts) + 1)]
    begins = torch.tensor(ends[:-1], device=sizes.device, dtype=torch.int32)
    a = sizes.random(ends[-1], size) / size**0.5
    b = sizes.random(len(counts), size, size)
    c = torch.empty_like(a)

    def launch() -> tuple[Any, ...]:
        kernel[(ends[-1] // tile, size // tile)](
            *(c, a, b, begins, size, size),
            GROUPS=len(counts),
            TILE=tile,
            TILE_K=tile_k,
            num_warps=8,
            num_stages=3,
        )
        return (c,)

    def expected() -> tuple[Any, ...]:
        pairs = pairwise(ends)
        return (torch.cat([a[low:high] @ b[n] for n, (low, high) in enumerate(pairs)]),)

    return Work("grouped_matmul", launch, expected)


def descriptor_matmul(sizes: Sizes) -> Work:
    """Tiles through tensor descriptors."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    from benchmarks.instrumentation.matmul_kernels import descriptor_matmul as kernel

    a, b, c, size = product_data(sizes, 4096)
    tile, tile_k = sizes.pick(128, 16), sizes.pick(64, 16)
    blocks = ((c, [tile, tile]), (a, [tile, tile_k]), (b, [tile_k, tile]))
    descriptors = [TensorDescriptor.from_tensor(each, block) for each, block in blocks]

    def launch() -> tuple[Any, ...]:
        kernel[(size // tile, size // tile)](
            *descriptors, size, TILE=tile, TILE_K=tile_k, num_warps=8, num_stages=3
        )
        return (c,)

    return Work("descriptor_matmul", launch, lambda: (a @ b,))


WORKS: dict[str, Callable[[Sizes], Work]] = {
    "matmul": matmul,
    "short": short,
    "softmax": softmax,
    "grouped GEMM": grouped_matmul,
    "layer norm": layer_norm,
    "dropout": dropout,
    "plain matmul": plain_matmul,
    "swiglu": swiglu,
    "top-k": top_k,
    "persistent matmul": persistent_matmul,
    "attention": attention,
    "TMA matmul": descriptor_matmul,
}


def make(name: str, *, tiny: bool) -> Work:
    """Return a work with its data.

    Args:
        name: One of ``WORKS``.
        tiny: For the interpreter.
    """
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    torch.manual_seed(0)
    return WORKS[name](Sizes("cpu" if tiny else "cuda", tiny))
