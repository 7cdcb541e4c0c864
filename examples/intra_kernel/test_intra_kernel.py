# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from recording import Options, parse  # before triton: switches its interpreter on

# isort: split
import gluon_matmul
import override
import scoped_add
import scoped_matmul
import torch
from device import DEVICE, ON_GPU, pick

FOLDER = Path(__file__).parent
EVERY_OPTION = ["--op-measure", "--warp-sampling", "--warp-ids", "0", "--increase-accuracy"]


@pytest.mark.parametrize("size", pick(full=(100_000, 1000), small=(200, 64)))
def test_scoped_addition_agrees_with_torch(size: int) -> None:
    x, y = torch.randn(size, device=DEVICE), torch.randn(size, device=DEVICE)

    ours = scoped_add.add(x, y)

    torch.testing.assert_close(ours, x + y)


def test_scoped_product_agrees_with_torch() -> None:
    size = pick(full=512, small=48)
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2))

    ours = scoped_matmul.matmul(a, b)

    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)


@pytest.mark.skipif(bool(gluon_matmul.missing()), reason=gluon_matmul.missing() or "it runs")
def test_scoped_product_in_gluon_agrees_with_torch() -> None:
    a, b = (torch.randn(512, 512, device=DEVICE, dtype=torch.float16) for _ in range(2))

    ours = gluon_matmul.matmul(a, b)

    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)


def test_options_make_the_mode() -> None:
    options = parse("Description.", [*EVERY_OPTION, "--warp-ids", "1, 3"])

    assert options == Options(
        op_measure=True, warp_sampling=True, warp_ids="1, 3", increase_accuracy=True
    )
    mode = options.mode()
    assert (mode.sampling_strategy, mode.sampling_options) == ("selective", "1,3")
    assert set(mode.optimizations) == {"clock32", "time_shift", "sched_stores"}


@pytest.mark.parametrize("name", ["scoped_add", "scoped_matmul", "gluon_matmul"])
@pytest.mark.parametrize("options", [["--op-measure"], EVERY_OPTION], ids=["tree", "every option"])
def test_script_writes_the_scopes_of_its_kernel(
    name: str, options: list[str], tmp_path: Path
) -> None:
    if name == "gluon_matmul" and gluon_matmul.missing():
        pytest.skip(gluon_matmul.missing())

    subprocess.run([sys.executable, FOLDER / f"{name}.py", *options], cwd=tmp_path, check=True)

    frames = names(json.loads((tmp_path / f"{name}.hatchet").read_text())[0])
    assert {"load", "store"} <= frames or {"copy_wait", "dot_wait", "store"} <= frames


@pytest.mark.skipif(not ON_GPU, reason="a timeline of warps needs a GPU")
def test_script_writes_a_timeline(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "scoped_add.py"], cwd=tmp_path, check=True)

    trace = json.loads((tmp_path / "scoped_add.chrome_trace").read_text())
    assert {"load_x", "load_y", "store"} <= {event["name"] for event in trace["traceEvents"]}


def test_records_stand_around_loads_and_stores() -> None:
    text = "  %0 = tt.load %p : t loc(#a)\n  %1 = arith.addf %0, %0\n  tt.store %p, %1 : t\n"

    lines = override.bracket(text).splitlines()

    assert [line.strip().split(" loc")[0] for line in lines] == [
        'proton.record start "load.0"',
        "%0 = tt.load %p : t",
        'proton.record end "load.0"',
        "%1 = arith.addf %0, %0",
        'proton.record start "store.0"',
        "tt.store %p, %1 : t",
        'proton.record end "store.0"',
    ]


def test_override_is_one_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "override.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("proton.record") >= 6
    if ON_GPU:
        frames = names(json.loads((tmp_path / "override.hatchet").read_text())[0])
        assert {"load.0", "load.1", "store.0"} <= frames
        assert "load.1" in done.stdout.partition("cycles")[2], "no tree was shown"


def names(node: dict) -> set[str]:
    found = {node["frame"]["name"]}
    return found.union(*(names(child) for child in node["children"]))
