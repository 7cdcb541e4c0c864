"""Kernels of Triton and Inductor on a GPU: trials, configurations, codes and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import no_session_left

from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.session.session import SessionOptions, open_session

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

__all__ = ["no_session_left"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

Record = Callable[..., Profile]


@triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"])  # type: ignore[untyped-decorator]
@triton.jit  # type: ignore[untyped-decorator]
def tuned(source, target, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets, mask=offsets < n)
    tl.store(target + offsets, values + 1, mask=offsets < n)


@triton.jit  # type: ignore[untyped-decorator]
def plain(source, target, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets, mask=offsets < n), mask=offsets < n)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    """Run a function in a session and return its profile."""

    def run(work: Callable[[], object], *, hook: str | None = None) -> Profile:
        name = str(tmp_path / "x")
        session = open_session(SessionOptions(name=name, backend="cupti", hook=hook))
        work()
        [path] = session.finalize(formats=("proton",))
        return read_profile(path)

    yield run
    torch.compiler.reset()


def leaves(profile: Profile, name: str) -> list[int]:
    return [row for row in range(len(profile)) if profile.path(row)[-1:] == (name,)]


def test_trials_stand_apart_and_the_chosen_configuration_is_on_the_kernel(record: Record) -> None:
    source = torch.ones(1000, device="cuda")

    def work() -> None:
        for _ in range(3):
            tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](
                source, torch.empty_like(source), 1000
            )

    profile = record(work)

    called = [row for row in leaves(profile, "tuned") if "<autotune>" not in profile.path(row)]
    counts = profile.columns["count"].values
    assert sum(int(counts[row]) for row in called) == 3
    chosen = f"BLOCK={tuned.best_config.kwargs['BLOCK']}"
    assert {profile.variant(row).config.split(",")[0] for row in called} == {chosen}
    tried = [row for row in leaves(profile, "tuned") if row not in called]
    assert {profile.variant(row).config.split(",")[0] for row in tried} == {"BLOCK=64", "BLOCK=128"}


def test_the_code_hash_is_tritons(record: Record) -> None:
    source = torch.ones(256, device="cuda")
    compiled: list[Any] = []

    def work() -> None:
        compiled.append(plain[(2,)](source, torch.empty_like(source), 256, BLOCK=128))

    profile = record(work)

    [row] = leaves(profile, "plain")
    assert profile.variant(row).code_hash == compiled[0].hash[:16]


@pytest.mark.parametrize("hook", [None, "triton"])
def test_instructions_of_kernels_are_counted(record: Record, hook: str | None) -> None:
    source = torch.ones(1 << 16, device="cuda")
    fused = torch.compile(lambda x: torch.nn.functional.gelu(x) * x)

    def work() -> None:
        plain[(512,)](source, torch.empty_like(source), len(source), BLOCK=128)
        fused(source)

    profile = record(work, hook=hook)

    [row] = leaves(profile, "plain")
    counts = profile.variant(row).instructions
    assert (counts["global loads"], counts["global stores"], counts.get("fp32")) == (1, 1, None)
    [name] = {each for each in profile.strings if each.startswith("triton_")}
    launched = leaves(profile, name)  # trials of configurations too, unless they are cached
    assert all(profile.variant(row).instructions["fp32"] > 10 for row in launched)


@pytest.mark.parametrize("hook", [None, "triton"])
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_kernels_of_inductor_have_stable_names(record: Record, hook: str | None, mode: str) -> None:
    @torch.compile(mode=mode)  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        return torch.nn.functional.gelu(x) * x + 1

    x = torch.ones(1024, 1024, device="cuda")

    def work() -> None:
        for _ in range(5):
            step(x)

    profile = record(work, hook=hook)

    raw = {name for name in profile.strings if name.startswith("triton_")}
    assert raw
    assert all(name.rpartition("_")[2].isdecimal() for name in raw)
    shown = build_tree(profile, ["count"], Selection())
    stable = {shown.name(row) for row in range(len(shown)) if shown.name(row).startswith("triton_")}
    assert stable == {name.rpartition("_")[0] for name in raw}
    kernels = [row for name in raw for row in leaves(profile, name)]
    assert all(profile.variant(row).code_hash for row in kernels) or mode == "reduce-overhead"


def test_metrics_that_are_tensors_do_not_wait_for_the_gpu(record: Record) -> None:
    def describe(grid: Any, metadata: Any, arguments: Any) -> dict[str, Any]:
        del grid, metadata
        return {"name": "described", "elements": arguments["source"].sum()}

    described = triton.jit(plain.fn, launch_metadata=describe)
    source = torch.ones(256, device="cuda")
    finished: list[bool] = []

    def work() -> None:
        for _ in range(2):
            described[(2,)](source, torch.empty_like(source), 256, BLOCK=128)
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        described[(2,)](source, torch.empty_like(source), 256, BLOCK=128)
        finished.append(torch.cuda.current_stream().query())

    profile = record(work, hook="triton")

    assert finished == [False]
    [row] = leaves(profile, "described")
    assert profile.columns["elements"].values[row] == 3 * 256.0
