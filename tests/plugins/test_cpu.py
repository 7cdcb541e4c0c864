from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench_plugins import cpu
from proton_bench_plugins.cpu import gpu_driver
from proton_bench_plugins.cpu.collector import mend_loop_bounds
from proton_bench_plugins.cpu.interpreter import describe_launch
from proton_bench_plugins.cpu.interpreter_driver import HostEvent, InterpreterDriver
from proton_bench_plugins.patch import Patch

GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


# -- choosing the backend ------------------------------------------------------------------------
@pytest.fixture
def loadable_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_driver.ctypes, "CDLL", lambda name: name)
    for variable in GPU_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_gpu_driver", lambda: None)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.setenv("TRITON_INTERPRET", "")


@pytest.mark.usefixtures("loadable_drivers")
@pytest.mark.parametrize(("node", "vendor"), [("nvidia0", "NVIDIA"), ("kfd", "AMD")])
def test_a_device_node_with_a_loadable_driver_is_a_gpu(
    tmp_path: Path, node: str, vendor: str
) -> None:
    (tmp_path / node).touch()

    assert gpu_driver.find_gpu_driver(tmp_path) == vendor


@pytest.mark.usefixtures("loadable_drivers")
def test_hidden_devices_do_not_count_as_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert gpu_driver.find_gpu_driver(tmp_path) is None


@pytest.mark.usefixtures("loadable_drivers")
def test_a_driver_without_a_device_does_not_count_as_a_gpu(tmp_path: Path) -> None:
    assert gpu_driver.find_gpu_driver(tmp_path) is None


def test_cpu_is_the_default_only_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_gpu_driver", lambda: None)
    without = cpu.proton_default_backend()
    monkeypatch.setattr(cpu, "find_gpu_driver", lambda: "NVIDIA")

    assert (without, cpu.proton_default_backend()) == ("cpu", None)


@pytest.mark.usefixtures("without_gpu")
def test_prepare_switches_the_interpreter_on_and_says_so_once() -> None:
    first, second = cpu.BACKEND.prepare(), cpu.BACKEND.prepare()

    assert "interpreter" in first
    assert cpu.os.environ["TRITON_INTERPRET"] == "1"
    assert second is None


@pytest.mark.usefixtures("without_gpu")
def test_prepare_warns_when_triton_is_imported_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))

    notice = cpu.BACKEND.prepare()

    assert "TRITON_INTERPRET=1" in notice
    assert cpu.os.environ["TRITON_INTERPRET"] == ""


def test_prepare_leaves_the_interpreter_off_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_gpu_driver", lambda: "NVIDIA")

    notice = cpu.BACKEND.prepare()

    assert "NVIDIA" in notice
    assert "TRITON_INTERPRET" not in cpu.os.environ


# -- depth ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["", "-1", "two", "1.5", "\u0663", "1" * 10])
def test_a_depth_that_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"mode cpu:depth={text!r}")):
        cpu.BACKEND.open(Mode("cpu", {"depth": text}, f"cpu:depth={text}"))


# -- attaching -----------------------------------------------------------------------------------
def test_a_library_unlike_any_known_version_is_named_and_stays_usable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interpreter = ModuleType("triton.runtime.interpreter")
    monkeypatch.setitem(sys.modules, interpreter.__name__, interpreter)
    collector = cpu.BACKEND.open(Mode())

    collector.start()
    collector.stop()

    assert "triton.runtime.interpreter is not recorded: AttributeError" in capsys.readouterr().err


def test_a_collector_starts_again_after_it_was_stopped() -> None:
    finders = list(sys.meta_path)
    collector = cpu.BACKEND.open(Mode())

    for _ in range(2):
        collector.start()
        collector.flush()
        collector.stop()

    assert sys.meta_path == finders


# -- patches -------------------------------------------------------------------------------------
class Greeter:
    def greet(self, name: str) -> str:
        return f"hello {name}"


def test_a_patch_wraps_and_is_removed() -> None:
    original = Greeter.greet
    patch = Patch(Greeter, "greet", lambda call, *args: call(*args).upper())

    patched = Greeter().greet("ada")
    patch.remove()

    assert patched == "HELLO ADA"
    assert Greeter.greet is original


def test_a_patch_below_another_wrapper_only_passes_calls_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Greeter, "greet", Greeter.greet)
    patch = Patch(Greeter, "greet", lambda call, *args: call(*args).upper())
    ours = Greeter.greet
    Greeter.greet = lambda self, name: ours(self, name) + "!"

    patch.remove()

    assert Greeter().greet("ada") == "hello ada!"


# -- launches ------------------------------------------------------------------------------------
def kernel(x, n, BLOCK=1):  # noqa: N803 - Triton writes compile-time parameters in capitals
    return x, n, BLOCK


def executor(grid: object) -> SimpleNamespace:
    return SimpleNamespace(
        fn=kernel, arg_names=["x", "n", "BLOCK"], constexprs=["BLOCK"], grid=grid
    )


def test_a_launch_has_grid_arguments_and_signature() -> None:
    tensor = SimpleNamespace(dtype="torch.float32")

    launch = describe_launch(
        executor((4, 2)), (tensor, 7), {"BLOCK": 16, "num_warps": 8}, function=None
    )

    variant = launch.variant()
    assert launch.arguments == {"x": tensor, "n": 7, "BLOCK": 16}
    assert launch.options == {"num_warps": 8}
    assert variant["grid"] == [4, 2, 1]
    assert variant["signature"] == "x:*float32, n:i32, BLOCK=16"
    assert launch.metadata().num_warps == 8


def test_constants_in_a_signature_hold_no_addresses() -> None:
    launch = describe_launch(executor((1,)), (None, 2**40), {"BLOCK": kernel}, function=None)

    assert launch.variant()["signature"] == "x:none, n:i64, BLOCK=kernel"


def test_a_grid_that_no_device_could_have_is_clamped() -> None:
    launch = describe_launch(executor((-1, 2**40)), (None, 7), {}, function=None)

    assert launch.variant()["grid"] == [0, 2**32 - 1, 1]


def test_a_grid_function_runs_once_per_launch() -> None:
    calls: list[int] = []

    def grid(arguments: dict[str, object]) -> tuple[int]:
        calls.append(1)
        return (arguments["BLOCK"] * 2,)

    target = executor(grid)
    launch = describe_launch(target, (None, 7), {"BLOCK": 16}, function=None)

    assert launch.grid == (32,)
    assert target.grid == (32,)
    assert len(calls) == 1


def test_a_launch_with_wrong_arguments_is_left_to_the_interpreter() -> None:
    launch = describe_launch(executor(lambda arguments: 1 / 0), (), {}, function=None)

    assert launch.grid == ()
    assert launch.name == "kernel"


# -- the interpreter's driver --------------------------------------------------------------------
def test_events_measure_the_host_and_never_zero() -> None:
    start, end = HostEvent(enable_timing=True), HostEvent(enable_timing=True)

    start.record()
    end.record()

    assert start.elapsed_time(end) > 0
    assert HostEvent().elapsed_time(HostEvent()) > 0


def test_the_autotuner_gets_the_quantiles_it_asks_for() -> None:
    calls: list[int] = []
    benchmark = InterpreterDriver().get_benchmarker()

    times = benchmark(lambda: calls.append(1), quantiles=(0.5, 0.2, 0.8))

    assert len(times) == 3
    assert times[1] <= times[0] <= times[2]
    assert len(calls) == 4


# -- loop bounds of the interpreter --------------------------------------------------------------
class InterpretedScalar:
    """Takes the place of Triton's tensor."""

    def __init__(self, value: int) -> None:
        self.handle = SimpleNamespace(data=np.full(1, value, dtype=np.int32))


def interpreter(index: Any) -> ModuleType:
    module = ModuleType("triton.runtime.interpreter")
    vars(module)["_patch_lang_tensor"] = lambda tensor, scope: scope.set_attr(
        tensor, "__index__", index
    )
    return module


def test_an_interpreter_that_cannot_use_a_scalar_as_a_bound_is_mended() -> None:
    module = interpreter(lambda scalar: int(scalar.handle.data))

    mended = mend_loop_bounds(module)
    again = mend_loop_bounds(module)
    module._patch_lang_tensor(InterpretedScalar, SimpleNamespace(set_attr=setattr))

    assert (mended, again) == (True, False)
    assert list(range(InterpretedScalar(3))) == [0, 1, 2]


@pytest.mark.parametrize(
    "module",
    [interpreter(lambda scalar: int(scalar.handle.data.squeeze())), ModuleType("unlike any other")],
    ids=["takes the element out", "of another build"],
)
def test_an_interpreter_that_can_loop_is_left_alone(module: ModuleType) -> None:
    before = dict(vars(module))

    assert not mend_loop_bounds(module)
    assert vars(module) == before
