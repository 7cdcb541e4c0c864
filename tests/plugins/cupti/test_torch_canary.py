"""The canary of NVIDIA GPUs on a driver that counts calls instead of cycles."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proton_bench import _native
from proton_bench_plugins.cupti.canary.torch_canary import _PTX, Driver, TorchCanary

NAMES = ("<canary>", "<warm-up>")


class FakeCuda:
    """libcuda with devices, of which some have a context; notes the names of calls."""

    def __init__(self, devices: int = 1, active: int | None = 0, fails: str = "") -> None:
        self.calls: list[str] = []
        self._devices, self._active, self._fails = devices, active, fails
        self._launches = 0

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self._fails:
                return 999
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = self._devices
            elif name == "cuDevicePrimaryCtxGetState":
                arguments[2]._obj.value = arguments[0].value == self._active
            elif name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = 4
            elif name == "cuLaunchKernel":
                self._launches += 1
            elif name == "cuMemcpyDtoHAsync_v2":
                self._write(arguments[0])
            return 0

        return call

    def _write(self, clocks: Any) -> None:
        """Write a clock that gets steady after twenty launches, at 2 GHz."""
        for block in range(4):
            clocks[3 * block] = 2000 * min(self._launches, 20) // 20
            clocks[3 * block + 1] = 1000


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return use(monkeypatch, FakeCuda())


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeCuda) -> FakeCuda:
    monkeypatch.setattr(Driver, "loaded", classmethod(lambda cls: cls(fake)))
    monkeypatch.setattr(_native, "exchange_capture_mode", lambda mode: mode)
    return fake


def scopes(into: list[str]) -> Any:
    def scope(name: str) -> AbstractContextManager[object]:
        into.append(name)
        return nullcontext()

    return scope


def test_it_warms_up_until_the_clock_is_steady_and_counts_then(cuda: FakeCuda) -> None:
    entered: list[str] = []

    ticks = TorchCanary().launch(scopes(entered), NAMES)

    assert ticks is not None
    assert ticks.launches == 10
    assert 1e9 * ticks.cycles / ticks.ns == 2e9
    assert entered == list(NAMES)
    assert cuda.calls.count("cuLaunchKernel") == 27 + 10  # eight steady ones end the warming up
    ended = ["cuStreamDestroy_v2", "cuMemFree_v2", "cuModuleUnload", "cuCtxPopCurrent_v2"]
    assert cuda.calls[-4:] == ended


@pytest.mark.parametrize(
    ("devices", "active", "device"),
    [(1, None, 0), (2, None, None), (2, 1, 1), (0, None, None)],
)
def test_no_context_is_made_on_one_of_several_devices(
    devices: int, active: int | None, device: int | None
) -> None:
    assert Driver(FakeCuda(devices, active)).device_in_use() == device


def test_without_a_started_driver_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(monkeypatch, FakeCuda(fails="cuDeviceGetCount"))
    entered: list[str] = []

    assert TorchCanary().launch(scopes(entered), NAMES) is None
    assert (entered, fake.calls) == ([], ["cuDeviceGetCount"])
    monkeypatch.setattr(Driver, "loaded", classmethod(lambda cls: None))
    assert TorchCanary().launch(scopes(entered), NAMES) is None


@pytest.mark.parametrize("call", ["cuModuleLoadData", "cuMemAlloc_v2", "cuLaunchKernel"])
def test_what_was_begun_is_undone_on_errors(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    fake = use(monkeypatch, FakeCuda(fails=call))

    with pytest.raises(OSError, match=f"{call} failed with code 999"):
        TorchCanary().launch(scopes([]), NAMES)

    assert fake.calls[-1] == "cuCtxPopCurrent_v2"
    assert fake.calls.count("cuModuleLoadData") - (call == "cuModuleLoadData") == fake.calls.count(
        "cuModuleUnload"
    )


class Torch(ModuleType):
    """torch.cuda, which starts at the first call that needs it and calls itself meanwhile."""

    def __init__(self) -> None:
        super().__init__("torch.cuda")
        self.is_started = False
        self.starts = 0

        def lazy_init() -> None:
            if not self.is_started and self.starts == 0:
                self.starts += 1
                self._lazy_init()
                self.is_started = True

        self._lazy_init = lazy_init

    def is_initialized(self) -> bool:
        return self.is_started


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    module = Torch()
    package = ModuleType("torch")
    package.cuda = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", package)
    monkeypatch.setitem(sys.modules, "torch.cuda", module)
    return module


def test_it_comes_due_once_when_torch_has_started_cuda(torch: Torch) -> None:
    due: list[bool] = []
    canary = TorchCanary()
    before = torch._lazy_init

    canary.watch(lambda: due.append(torch.is_started))
    torch._lazy_init()
    torch._lazy_init()

    assert due == [True]
    assert torch._lazy_init is before


def test_it_comes_due_at_once_where_cuda_is_started(torch: Torch) -> None:
    torch.is_started = True
    due: list[bool] = []

    TorchCanary().watch(lambda: due.append(True))

    assert due == [True]


def test_unwatched_it_comes_due_no_more(torch: Torch) -> None:
    due: list[bool] = []
    canary = TorchCanary()
    canary.watch(lambda: due.append(True))

    canary.unwatch()
    torch._lazy_init()

    assert due == []
    assert torch.is_started


def test_looking_for_a_library_does_not_load_it() -> None:
    program = (
        "from proton_bench_plugins.cupti.canary.torch_canary import Driver\n"
        "print(Driver.loaded() is None, 'libcuda.so' in open('/proc/self/maps').read())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["True", "False"]


def _assembler() -> str | None:
    triton = pytest.importorskip("triton", reason="its assembler is needed")
    own = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    return str(own) if own.exists() else shutil.which("ptxas")


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_the_kernel_is_ptx_for_every_gpu(tmp_path: Path, architecture: str) -> None:
    assembler = _assembler()
    if assembler is None:
        pytest.skip("there is no ptxas")
    (tmp_path / "canary.ptx").write_bytes(_PTX)
    words = [assembler, f"-arch={architecture}", "canary.ptx", "-o", "canary.cubin"]

    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
