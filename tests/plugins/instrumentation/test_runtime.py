"""The options of the native runtime, and whether the backend can run here."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench import _native
from proton_bench.plugin.contract import check_availability, check_description, check_modes
from proton_bench_plugins.instrumentation import BACKEND, availability, proton_backends
from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes
from proton_bench_plugins.instrumentation.runtime import (
    addressable_bytes,
    native_layout,
    open_runtime,
)
from proton_bench_plugins.instrumentation.settings import Settings

KERNEL = KernelScopes(
    name="matmul",
    names={0: "loop", 1: "dot"},
    parents={1: 0},
    num_warps=12,
    profile_scratch_size=6272,
    shared=104824,
    registers=168,
    target={"backend": "cuda", "arch": 90, "warp_size": 32},
    mode="proton_bench:0",
)


class Measured:
    """The measured cost of a record, if it is asked for."""

    def __init__(self) -> None:
        self.modes: list[str] = []

    def cost(self, mode: str) -> int:
        self.modes.append(mode)
        return 32

    def facts(self) -> dict[str, Any]:
        return {"record_cost_cycles": {"0": 32}} if self.modes else {}


class Native:
    """Stands in for the native runtime."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.kernels: dict[int, Any] = {}
        self.allocator = self.launch_exit = self.start = self.flush = self.stop = print
        self.remove_kernel = self.add_plain = self.kernels.pop
        self.read_records = print

    def add_kernel(self, function: int, layout: Any) -> None:
        self.kernels[function] = layout

    def facts(self) -> dict[str, Any]:
        return {"launches": 3}


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> list[Native]:
    made: list[Native] = []

    def make(**options: Any) -> Native:
        made.append(Native(**options))
        return made[-1]

    monkeypatch.setattr(_native, "InstrumentationRuntime", make, raising=False)
    return made


def test_a_kernel_is_described_by_what_its_buffer_needs() -> None:
    settings = Settings(warp_ids=(0, 9), cta=((0, 0), (4, 7)), optimizations=("clock32",))

    assert native_layout(KERNEL, settings) == {
        "name": "matmul",
        "scratch_bytes": 6272,
        "warps": 12,
        "warp_ids": [0, 9],
        "names": {0: "loop", 1: "dot"},
        "parents": {1: 0},
        "programs": [(0, 0), (4, 7)],
        "short_clock": True,
    }


def test_the_native_runtime_gets_the_limits_and_the_kernels(
    native: list[Native], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = open_runtime(Settings(byte_limit=1 << 20, trace=True))
    measured = Measured()
    monkeypatch.setattr(runtime, "_calibration", measured)

    runtime.add_kernel(7, KERNEL)

    assert native[0].options == {
        "byte_limit": 1 << 20,
        "trace": True,
        "addressable_bytes": addressable_bytes(),
    }
    assert native[0].kernels[7]["name"] == "matmul"
    assert "record_cost" not in native[0].kernels[7]
    assert measured.modes == []  # nothing is deducted, so nothing is launched to measure it
    assert runtime.facts() == {"launches": 3}


def test_the_cost_of_records_is_taken_off_where_the_mode_says_so(
    native: list[Native], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = open_runtime(Settings(optimizations=("time_shift",)))
    measured = Measured()
    monkeypatch.setattr(runtime, "_calibration", measured)

    runtime.add_kernel(7, KERNEL)

    assert native[0].kernels[7]["record_cost"] == 32
    assert measured.modes == [KERNEL.mode]
    assert runtime.facts() == {"launches": 3, "record_cost_cycles": {"0": 32}}


def test_no_cost_is_measured_where_no_device_reads_the_records(
    native: list[Native], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = open_runtime(Settings(optimizations=("time_shift",)))
    measured = Measured()
    monkeypatch.setattr(runtime, "_calibration", measured)

    runtime.add_kernel(7, replace(KERNEL, target={"backend": "hip", "arch": "gfx942"}))

    assert measured.modes == []
    assert "record_cost" not in native[0].kernels[7]


@pytest.mark.parametrize(("has_register", "expected"), [(True, 0), (False, 1 << 31)])
def test_kernels_of_an_old_compiler_reach_two_gibibytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_register: bool, expected: int
) -> None:
    if has_register:
        (tmp_path / "_instrumentation.py").touch()
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)

    assert addressable_bytes() == expected


def test_the_backend_describes_itself() -> None:
    (backend,) = proton_backends()

    check_description(backend)
    check_availability(backend)
    check_modes(backend)
    assert {mode.name for mode in backend.modes} >= {"", "default", "mma"}
    assert backend.data == ("tree", "trace")


@pytest.mark.parametrize(
    ("vendor", "has_triton", "said"),
    [
        ("NVIDIA", False, "Triton is not installed"),
        (None, True, "`-b cpu` records the same scopes in Triton's interpreter"),
        ("AMD", True, "records of AMD GPUs can be compiled"),
        ("NVIDIA", True, None),
    ],
)
def test_what_is_missing_is_said(
    native: list[Native],
    monkeypatch: pytest.MonkeyPatch,
    vendor: str | None,
    has_triton: bool,
    said: str | None,
) -> None:
    monkeypatch.setattr(availability, "find_gpu_driver", lambda: vendor)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object() if has_triton else None)

    obstacle = availability.find_obstacle()

    assert obstacle is None if said is None else said in str(obstacle)
    assert BACKEND.availability().available is (said is None)


def test_a_module_without_the_runtime_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_native, "InstrumentationRuntime", raising=False)

    assert "install proton_bench again" in str(availability.find_obstacle())
