"""Launches with the hook ``triton`` get the metric, whatever the kernel is."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, no_session_left

import proton_bench as proton
from proton_bench.flags import flags
from proton_bench.recording.kernels.hooks import HookManager
from proton_bench.recording.native import native

compiler = pytest.importorskip("triton.compiler.compiler")

from fakes.memory_kernels import elementwise  # noqa: E402

__all__ = ["fakes", "no_session_left"]

TTIR = """module {
  tt.func public @k(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %v = tt.load %x : tensor<64x!tt.ptr<f16>>
    }
    tt.return
  }
}
"""
SIGNATURE = {"x": "*fp16", "y": "*fp16", "N": "i32", "BLOCK": "constexpr"}


class Loaded(compiler.CompiledKernel):  # type: ignore[misc]
    """A kernel as if it were loaded on a GPU."""

    def __init__(self, ttir: str | None = TTIR) -> None:
        self.src = compiler.ASTSource(elementwise, SIGNATURE, {"BLOCK": 64})
        self.asm = {} if ttir is None else {"ttir": ttir}
        self.name, self.function, self.metadata = "k", 1, None

    def _init_handles(self) -> None:
        pass


def launch(kernel: Loaded, size: Any, grid: Any = (2, 3)) -> None:
    """Launch a kernel the way Triton and a device would."""
    metadata = kernel.launch_metadata(grid, 0, None, None, size, 64)
    HookManager.enter(metadata)
    native.emit_kernel(native.emit_launch(), "k", 100, 110, "CUDA", 0, 0)
    HookManager.exit(metadata)


@pytest.fixture
def metrics(tmp_path: Path, fakes: FakeBackends) -> Callable[[], dict[str, Any]]:
    """Start a session with the hook and return a function that reads the kernel's metrics."""
    session = proton.start(tmp_path / "x", hook="triton")
    return lambda: child(proton.data.get(session)[0], "k")["metrics"]


@pytest.fixture
def own_metadata(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Return a function that gives the kernel's source its own ``launch_metadata``."""
    return lambda function: monkeypatch.setattr(elementwise, "launch_metadata", function)


def test_it_adds_up_over_launches(metrics: Callable[[], dict[str, Any]]) -> None:
    kernel = Loaded()
    launch(kernel, 128)
    launch(kernel, 129)
    launch(kernel, 128, [4])  # a grid function may return a list

    assert metrics()["code_bytes"] == 6 * 256 + 6 * 384 + 4 * 256
    assert metrics()["count"] == 3


def test_a_kernel_that_is_gone_is_not_kept(metrics: Callable[[], dict[str, Any]]) -> None:
    kernel = Loaded()
    alive = weakref.ref(kernel)
    launch(kernel, 128)
    del kernel

    assert alive() is None
    launch(Loaded(), 128)
    assert metrics()["code_bytes"] == 2 * 6 * 256


def test_own_metadata_stands_beside_it(
    metrics: Callable[[], dict[str, Any]], own_metadata: Callable[..., None]
) -> None:
    own_metadata(lambda grid, facts, arguments: {"bytes": 7})
    launch(Loaded(), 64)

    assert (metrics()["bytes"], metrics()["code_bytes"]) == (7, 6 * 128)


def test_own_metadata_of_that_name_wins(
    metrics: Callable[[], dict[str, Any]], own_metadata: Callable[..., None]
) -> None:
    own_metadata(lambda grid, facts, arguments: {"code_bytes": 7})
    launch(Loaded(), 64)

    assert metrics()["code_bytes"] == 7


DOT = TTIR.replace(
    "%v = tt.load %x : tensor<64x!tt.ptr<f16>>",
    "%v = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x8xf16> -> tensor<16x8xf32>",
)


def test_flops_of_the_code_are_those_of_the_kernel(metrics: Callable[[], dict[str, Any]]) -> None:
    kernel = Loaded(DOT)
    launch(kernel, 128)
    launch(kernel, 128)
    launch(kernel, 64)

    assert metrics()["flops16"] == 6 * (2 + 2 + 1) * 2 * 16 * 8 * 32
    assert not metrics().keys() & {"derived_flops", "code_flops"}


def test_kernels_have_the_shapes_of_their_tensors(tmp_path: Path, fakes: FakeBackends) -> None:
    torch = pytest.importorskip("torch")
    session = proton.start(tmp_path / "x", context="shapes")  # has the hook by itself
    kernel = Loaded()

    def run(*tensors: Any) -> None:
        metadata = kernel.launch_metadata((2,), 0, *tensors, 5, 64)
        HookManager.enter(metadata)
        native.emit_kernel(native.emit_launch(), "k", 100, 110, "CUDA", 0, 0)
        HookManager.exit(metadata)

    small, large = torch.empty(2, 4), torch.empty(8, dtype=torch.bfloat16)
    for tensors in ((small, large), (large, large), (small, large)):
        run(*tensors)
    proton.finalize(session, "proton")

    profile = proton.open_profile(tmp_path / "x.proton")
    counts, asked = profile.columns["count"].values, profile.columns["code_bytes"].values
    found = [
        (profile.variant(row).signature, counts[row], asked[row])
        for row in range(len(profile))
        if profile.name(row) == "k"
    ]
    assert sorted(found) == [
        ("bf16[8], bf16[8], BLOCK=64", 1, 2 * 128),
        ("f32[2,4], bf16[8], BLOCK=64", 2, 2 * 2 * 128),
    ]


def test_flops_of_own_metadata_win(
    metrics: Callable[[], dict[str, Any]], own_metadata: Callable[..., None]
) -> None:
    own_metadata(lambda grid, facts, arguments: {"flops": 7})
    kernel = Loaded(DOT)
    launch(kernel, 64)
    launch(kernel, 64)

    assert (metrics()["flops"], metrics()["derived_flops"]) == (14, 2 * 6 * 2 * 16 * 8 * 32)
    assert "flops16" not in metrics()


@pytest.mark.parametrize(
    ("ttir", "size", "grid"),
    [
        (None, 64, (2,)),
        ("no TTIR", 64, (2,)),
        (TTIR, "no integer", (2,)),
        (TTIR, [64], (2,)),
        (TTIR, 64, (None,)),
    ],
)
def test_what_is_not_known_is_left_out_without_a_word(
    ttir: str | None,
    size: Any,
    grid: Any,
    metrics: Callable[[], dict[str, Any]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    kernel = Loaded(ttir)
    launch(kernel, size, grid)
    launch(kernel, size, grid)

    assert "code_bytes" not in metrics()
    assert metrics()["count"] == 2
    assert capfd.readouterr().err == ""


def test_trees_as_upstream_writes_them_lack_it(
    metrics: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "upstream_shape", True)
    launch(Loaded(), 64)

    assert "code_bytes" not in metrics()


def test_triton_is_left_as_it_was(tmp_path: Path, fakes: FakeBackends) -> None:
    before = compiler.CompiledKernel.launch_metadata
    proton.start(tmp_path / "x", hook="triton")
    during = compiler.CompiledKernel.launch_metadata
    proton.deactivate()
    paused = compiler.CompiledKernel.launch_metadata
    proton.finalize()

    assert during is not before
    assert paused is compiler.CompiledKernel.launch_metadata is before
