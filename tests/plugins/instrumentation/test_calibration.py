"""The cost of a record is measured once per mode and device, without harm to the user."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench import _native
from proton_bench.recording.kernels import kernel_records
from proton_bench_plugins.instrumentation import calibration
from proton_bench_plugins.instrumentation.calibration import KERNEL, Calibration

pytest.importorskip("triton")


Taken = tuple[dict[str, int], list[dict[str, Any]]]


class Runtime:
    """Returns the cycles of empty scopes in each launch."""

    def __init__(self, *launches: Taken) -> None:
        self.launches = list(launches)
        self.capturing = False
        self.taken: list[tuple[int, int]] = []

    def take(self, function: int, stream: int) -> Taken:
        self.taken.append((function, stream))
        return self.launches[len(self.taken) - 1]

    def is_capturing(self, stream: int) -> bool:
        return self.capturing


class Kernel:
    """Stands for the kernel of empty scopes."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, ...]] = []
        self.accepted: list[bool] = []
        self.measured: Calibration | None = None
        self.error: Exception | None = None

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, **options: Any) -> None:
            if self.error is not None:
                raise self.error
            self.launches.append(grid)
            self.accepted.append(kernel_records.accepts("triton"))
            if self.measured is not None and len(self.launches) == 1:
                self.measured.note(11)

        return launch


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    made = Kernel()
    module = SimpleNamespace(**{KERNEL: made, "SCOPES": 3})
    monkeypatch.setattr(calibration.importlib, "import_module", lambda name: module)
    monkeypatch.setattr(calibration, "_measured", {})
    from triton.runtime import driver

    device = SimpleNamespace(get_current_device=lambda: 0, get_current_stream=lambda device: 7)
    monkeypatch.setattr(driver, "_active", device, raising=False)
    yield made
    kernel_records.refuse("triton")


def launches(*cycles: int) -> list[Taken]:
    """Return three launches; scopes of the last one took ``cycles``, in two warps each."""
    cold: Taken = ({}, [{"count": 2, "cycles": 2000}])
    return [cold, cold, ({}, [{"count": 2, "cycles": 2 * each} for each in cycles])]


def test_the_cost_is_the_median_of_a_warm_launch(kernel: Kernel) -> None:
    runtime = Runtime(*launches(20, 22, 90))
    kernel.measured = Calibration(runtime)

    assert kernel.measured.cost("mode") == 22
    assert runtime.taken == [(11, 7)] * 3
    assert kernel.measured.facts() == {"record_cost_cycles": {"0": 22}}


def test_it_is_measured_once_per_mode(kernel: Kernel) -> None:
    runtime = Runtime(*launches(20))
    kernel.measured = Calibration(runtime)
    kernel.measured.cost("mode")

    assert kernel.measured.cost("mode") == 20
    assert Calibration(Runtime()).cost("mode") == 20
    assert len(kernel.launches) == 3


def test_nothing_is_launched_into_a_graph(kernel: Kernel) -> None:
    runtime = Runtime(*launches(20))
    runtime.capturing = True
    kernel.measured = Calibration(runtime)

    assert kernel.measured.cost("mode") is None
    assert kernel.launches == []
    runtime.capturing = False
    assert kernel.measured.cost("mode") == 20


def test_a_kernel_that_fails_is_not_an_error_of_the_user(
    kernel: Kernel, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel.error = RuntimeError("no room")
    measured = Calibration(Runtime())

    assert measured.cost("mode") is None
    assert measured.cost("mode") is None
    assert capfd.readouterr().err.count("no room") == 1
    assert measured.facts() == {}


def test_records_are_accepted_for_that_kernel_only(kernel: Kernel) -> None:
    kernel.measured = Calibration(Runtime(*launches(20)))
    kernel.measured.cost("mode")

    assert kernel.accepted == [True] * 3
    assert not kernel_records.accepts("triton")


@pytest.mark.parametrize("error", [None, RuntimeError("no room")])
def test_what_is_launched_stays_out_of_the_tree(
    error: Exception | None, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(_native, "mute_launches", lambda: calls.append("mute"))
    monkeypatch.setattr(_native, "unmute_launches", lambda: calls.append(len(kernel.launches)))
    kernel.error = error

    Calibration(Runtime(*launches(20))).cost("mode")

    assert calls == ["mute", 0 if error else 3]


def test_warps_that_are_selected_are_in_the_program() -> None:
    from proton_bench_plugins.instrumentation.runtime import _warps_that_record
    from proton_bench_plugins.instrumentation.settings import Settings

    assert _warps_that_record(Settings()) == 4
    assert _warps_that_record(Settings(warp_ids=(0, 9))) == 16
