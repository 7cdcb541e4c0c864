"""Observers of Triton and Inductor during a session: trials, and codes of kernels."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, names, no_session_left

import proton_bench as proton
from proton_bench import _native
from proton_bench.errors import OutputError
from proton_bench.recording.native import native
from proton_bench_plugins.patch import Patch
from proton_bench_plugins.triton import codes, trials

__all__ = ["fakes", "no_session_left"]

Noted = list[tuple[int, int, str]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Calls that reach the native side."""
    calls: Noted = []
    monkeypatch.setattr(codes, "_known", {})
    monkeypatch.setattr(
        _native,
        "set_kernel_hash",
        lambda function, code, config="": calls.append((function, code, config)),
    )
    return calls


class Config:
    """A configuration as Triton has it."""

    def __init__(self, **values: object) -> None:
        self.kwargs = values
        self.num_warps, self.num_stages, self.num_ctas, self.maxnreg = 4, 3, 1, None


class Kernel:
    """A compiled kernel; it is loaded."""

    def __init__(self, function: int = 4096, code: str = "00000000000000ff" + "a" * 48) -> None:
        self.function, self.hash = function, code


def launch(name: str) -> None:
    """Have a device run a kernel."""
    correlation = native.emit_launch()
    native.emit_kernel(correlation, name, 0, 10, "CUDA", 0, 0)


@pytest.fixture
def triton_autotuner() -> Iterator[types.ModuleType]:
    """A ``triton.runtime.autotuner`` whose trials launch, observed."""

    class Autotuner:
        best_config = Config(BLOCK=64)

        def _bench(self, *args: object, config: object, **meta: object) -> float:
            del args, meta
            launch("tuned")
            trials_of.append(trials.config_of_trial())
            if config is None:
                raise ValueError("no configuration")
            return 1.0

        def run(self, *args: object) -> Kernel:
            self._bench(*args, config=Config(BLOCK=32))
            self._bench(*args, config=self.best_config)
            launch("tuned")
            return Kernel()

    trials_of: list[str] = []
    module: Any = types.ModuleType("triton.runtime.autotuner")
    module.Autotuner, module.trials = Autotuner, trials_of
    patches = [*trials.watch_triton(module), *trials.watch_choices(module)]
    yield module
    for patch in patches:
        patch.remove()


def test_trials_stand_below_their_state_and_know_their_configuration(
    tmp_path: Path, fakes: FakeBackends, triton_autotuner: Any, noted: Noted
) -> None:
    session = proton.start(tmp_path / "x")
    with proton.scope("layer"):
        triton_autotuner.Autotuner().run()
    root = proton.data.get(session)[0]

    assert names(child(root, "layer")) == ["<autotune>", "tuned"]
    assert child(root, "layer", "<autotune>", "tuned")["metrics"]["count"] == 2
    assert child(root, "layer", "tuned")["metrics"]["count"] == 1
    assert triton_autotuner.trials == [
        "BLOCK=32, num_warps=4, num_stages=3",
        "BLOCK=64, num_warps=4, num_stages=3",
    ]
    assert trials.config_of_trial() == ""


def test_the_chosen_configuration_is_noted_once_for_a_kernel(
    triton_autotuner: Any, noted: Noted
) -> None:
    tuner = triton_autotuner.Autotuner()

    tuner.run()
    tuner.run()

    assert noted == [(4096, 0xFF, "BLOCK=64, num_warps=4, num_stages=3")]


def test_a_trial_that_fails_leaves_its_state(triton_autotuner: Any) -> None:
    depth = native.state_depth()

    with pytest.raises(ValueError, match="no configuration"):
        triton_autotuner.Autotuner()._bench(config=None)

    assert native.state_depth() == depth
    assert trials.config_of_trial() == ""


def test_trials_of_inductor_are_distinguished_and_its_launchers_noted(
    tmp_path: Path, fakes: FakeBackends, noted: Noted
) -> None:
    class CachingAutotuner:
        def bench(self, launcher: Any, *args: object) -> float:
            del args
            launch(launcher.name)
            return 1.0

    class StaticResult:
        kernel, config = Kernel(), Config(XBLOCK=128)

        def make_launcher(self) -> str:
            return "launcher"

    module = SimpleNamespace(CachingAutotuner=CachingAutotuner, StaticResult=StaticResult, other=1)
    patches = trials.watch_inductor(module)  # type: ignore[arg-type]
    session = proton.start(tmp_path / "x")
    made = StaticResult().make_launcher()
    CachingAutotuner().bench(SimpleNamespace(name="triton_poi_fused_0", config=Config(XBLOCK=128)))
    root = proton.data.get(session)[0]
    for patch in patches:
        patch.remove()

    assert made == "launcher"
    assert names(root) == ["<autotune>"]
    assert names(child(root, "<autotune>")) == ["triton_poi_fused_0"]
    assert noted == [(4096, 0xFF, "XBLOCK=128, num_warps=4, num_stages=3")]


def test_what_inductor_times_is_a_trial_whatever_it_runs(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    class Benchmarker:
        def benchmark_gpu(self, run: Any, *, rep: int = 1) -> float:
            for _ in range(rep):
                run()
            return 1.0

    class InductorBenchmarker(Benchmarker):
        def benchmark_gpu(self, run: Any, *, rep: int = 1) -> float:
            return super().benchmark_gpu(run, rep=rep)

    module = SimpleNamespace(one=Benchmarker, other=InductorBenchmarker, name="x")
    patches = trials.watch_benchmarks(module)  # type: ignore[arg-type]
    session = proton.start(tmp_path / "x")
    with proton.scope("compiled"):
        time_ms = InductorBenchmarker().benchmark_gpu(lambda: launch("gemm"), rep=3)
    launch("gemm")
    root = proton.data.get(session)[0]
    for patch in patches:
        patch.remove()

    assert time_ms == 1.0
    assert child(root, "compiled", "<autotune>", "gemm")["metrics"]["count"] == 3
    assert child(root, "gemm")["metrics"]["count"] == 1


def test_kernels_that_are_not_loaded_are_not_noted(noted: Noted) -> None:
    for function in (None, 0, "pointer"):
        codes.note(SimpleNamespace(function=function, hash="ab" * 32))
    codes.note(None)
    codes.note(SimpleNamespace(function=8, hash=""))

    assert noted == []


def test_a_function_that_is_another_kernels_now_is_noted_again(noted: Noted) -> None:
    codes.note(Kernel(code="0" * 15 + "1"))
    codes.note(Kernel(code="0" * 15 + "1"))
    codes.note(Kernel(code="0" * 15 + "2"))

    assert [code for _, code, _ in noted] == [1, 2]


def test_a_hash_that_is_not_a_number_still_distinguishes_codes(noted: Noted) -> None:
    codes.note_function(1, "not hexadecimal")
    codes.note_function(2, "not hexadecimal either")

    assert noted[0][1] != noted[1][1]
    assert all(0 < code < 2**64 for _, code, _ in noted)


def test_a_configuration_is_one_line_without_what_goes_without_saying() -> None:
    tuned = Config(BLOCK_M=128, num_warps=8)
    tuned.num_ctas, tuned.maxnreg = 2, None  # type: ignore[assignment]

    assert codes.config_text(tuned) == "BLOCK_M=128, num_warps=8, num_stages=3, num_ctas=2"
    assert codes.config_text(None) == ""


def test_triton_is_observed_while_a_session_lives(tmp_path: Path, fakes: FakeBackends) -> None:
    autotuner = pytest.importorskip("triton.runtime.autotuner").Autotuner
    from triton import knobs

    loaded = knobs.runtime.kernel_load_end_hook
    before = (autotuner._bench, list(loaded.calls))

    first, second = proton.start(tmp_path / "first"), proton.start(tmp_path / "second")
    during = (autotuner._bench, len(loaded.calls))
    proton.finalize(first)
    still = (autotuner._bench, len(loaded.calls))
    proton.finalize(second)

    assert during == still
    assert during[0] is not before[0]
    assert during[1] == len(before[1]) + 1
    assert (autotuner._bench, loaded.calls) == before


def test_a_session_that_could_not_be_written_keeps_nothing_attached_for_ever(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = pytest.importorskip("triton").knobs.runtime.kernel_load_end_hook

    def fail(*arguments: object, **options: object) -> None:
        raise OutputError("the disk is full")

    first = proton.start(tmp_path / "first")
    with monkeypatch.context() as patched:
        patched.setattr("proton_bench.recording.session.recording.write_session", fail)
        with pytest.raises(OutputError):
            proton.finalize(first)
    proton.finalize(proton.start(tmp_path / "second"))

    assert loaded.calls == []


def test_a_loaded_kernel_is_noted_with_the_configuration_on_trial(
    tmp_path: Path, fakes: FakeBackends, noted: Noted
) -> None:
    runtime = pytest.importorskip("triton").knobs.runtime
    proton.start(tmp_path / "x")

    runtime.kernel_load_end_hook(None, 77, "mm", {}, "00000000000000aa" + "0" * 48)

    assert noted == [(77, 0xAA, "")]


def test_kernels_that_were_loaded_before_are_noted(
    tmp_path: Path, fakes: FakeBackends, noted: Noted
) -> None:
    compiler = pytest.importorskip("triton.compiler.compiler")
    early = object.__new__(compiler.CompiledKernel)
    early.function, early.hash = 55, "00000000000000bb" + "0" * 48

    proton.start(tmp_path / "x")

    assert (55, 0xBB, "") in noted


def test_launch_chains_stay_empty_so_that_inductor_keeps_its_static_launcher(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    knobs = pytest.importorskip("triton").knobs
    chains = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)

    plain = proton.start(tmp_path / "plain")
    without = [len(chain.calls) for chain in chains]
    proton.finalize(plain)
    proton.start(tmp_path / "hooked", hook="triton")
    asked_for = [len(chain.calls) for chain in chains]

    assert without == [0, 0]
    assert asked_for == [1, 1]


def test_inductors_static_launcher_takes_kernels_of_an_unhooked_session(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    module = pytest.importorskip("torch._inductor.runtime.static_triton_launcher")
    launcher = next(each for name, each in vars(module).items() if name.startswith("Static"))
    proton.start(tmp_path / "plain")
    unhooked = _refusal(launcher)
    proton.start(tmp_path / "hooked", hook="triton")
    hooked = _refusal(launcher)

    assert "hooks" not in unhooked
    assert "hooks" in hooked


def _refusal(launcher: Any) -> str:
    """Return why a launcher for a kernel without attributes cannot be made."""
    plain = SimpleNamespace(arg_names=[], constexprs=[], params=[], __name__="k")
    source = SimpleNamespace(fn=plain, signature={}, constants={}, attrs={})
    kernel = SimpleNamespace(
        name="k", src=source, hash="ab", asm={"cubin": b""}, _cubin_path="k", cubin_path="k"
    )
    try:
        launcher(kernel)
    except RuntimeError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError) as error:  # what it lacks is found after hooks
        return type(error).__name__
    return ""


def test_a_library_unlike_every_known_one_is_said_and_left_alone(
    tmp_path: Path,
    fakes: FakeBackends,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    autotuner = pytest.importorskip("triton.runtime.autotuner")
    monkeypatch.setattr(autotuner, "Autotuner", type("Autotuner", (), {}))

    session = proton.start(tmp_path / "x")
    proton.finalize(session)

    assert "trials of triton.runtime.autotuner are not separated" in capfd.readouterr().err
    assert not any(isinstance(each, Patch) for each in vars(autotuner.Autotuner).values())


def test_launches_are_left_alone_while_all_sessions_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Autotuner:
        def _bench(self) -> None: ...
        def run(self) -> None: ...

    module: Any = types.ModuleType("triton.runtime.autotuner")
    module.Autotuner, original = Autotuner, Autotuner.run
    monkeypatch.setitem(sys.modules, "triton.runtime.autotuner", module)
    plan = proton.schedule(wait=1, warmup=0, active=1, repeat=1)
    session = proton.start(tmp_path / "x", backend="cpu", schedule=plan)
    is_original = [Autotuner.run is original]

    for _ in range(3):
        proton.step()
        is_original.append(Autotuner.run is original)
    proton.finalize(session)

    assert is_original == [True, False, True, True]
