"""The launch hook on compiled kernels: Triton fires the chains and evaluates the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, names, no_session_left, read_tree

import proton_bench as proton
from proton_bench.hooks import LaunchHook

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

__all__ = ["fakes", "no_session_left"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]


def _describe(grid: Any, metadata: Any, arguments: Any) -> dict[str, Any]:
    if arguments["n"] < 0:
        raise ValueError("negative size")
    total = torch.full((), float(arguments["n"]), device="cuda")
    return {
        "name": f"{metadata.name}_{arguments['BLOCK']}",
        "flops32": arguments["n"],
        "bytes": 8 * arguments["n"],
        "elements": total,
    }


@triton.jit(launch_metadata=_describe)  # type: ignore[untyped-decorator]
def scale(source, target, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets, mask=offsets < n)
    tl.store(target + offsets, values * 2, mask=offsets < n)


def _launch(n: int = 256) -> None:
    source = torch.ones(256, device="cuda")
    target = torch.empty_like(source)
    scale[(2,)](source, target, n, BLOCK=128)
    torch.cuda.synchronize()


def test_metadata_of_a_compiled_kernel_stands_on_its_node(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    session = proton.start(tmp_path / "x", hook="triton")
    with proton.scope("layer"):
        _launch()
        _launch()
    proton.finalize(session)
    _launch()

    metrics = child(read_tree(tmp_path / "x.hatchet"), "layer", "scale_128")["metrics"]
    named = {"flops32": 512.0, "bytes": 4096, "elements": 512.0}
    assert metrics == {**named, "code_bytes": 2 * 2 * 128 * (4 + 4)}


def test_filtered_and_failing_kernels_still_run(
    tmp_path: Path, fakes: FakeBackends, capfd: pytest.CaptureFixture[str]
) -> None:
    proton.start(tmp_path / "x", hook="triton")
    _launch(-1)
    LaunchHook().configure(exclude="scale")
    _launch()
    proton.finalize()

    assert "kernel 'scale': launch_metadata raised ValueError: negative size" in (
        capfd.readouterr().err
    )
    assert names(read_tree(tmp_path / "x.hatchet")) == []


def test_chains_are_empty_before_and_after(tmp_path: Path, fakes: FakeBackends) -> None:
    runtime = triton.knobs.runtime
    chains = [runtime.launch_enter_hook, runtime.launch_exit_hook]

    without = proton.start(tmp_path / "without")
    plain = [list(chain.calls) for chain in chains]
    proton.finalize(without)
    proton.start(tmp_path / "with", hook="triton")
    hooked = [len(chain.calls) for chain in chains]
    proton.deactivate()
    paused = [list(chain.calls) for chain in chains]

    assert plain == paused == [[], []]
    assert hooked == [1, 1]


def test_gpu_facts_are_in_the_provenance(tmp_path: Path, fakes: FakeBackends) -> None:
    from proton_bench.recording.gpu.nvidia import gpu_facts

    facts = gpu_facts()

    assert len(facts) >= torch.cuda.device_count()
    assert facts[0]["name"] == torch.cuda.get_device_name(0)
    assert {"uuid", "driver", "sm_clock_mhz"} <= set(facts[0])
