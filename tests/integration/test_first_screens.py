"""First screens of recorded profiles, as golden files.

``pytest --snapshot-update`` on this file writes them again; look at the difference.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.counted import Kernel, counted_profile
from fakes.histories import judged, points_of_times, revision, stepped
from rich.console import Console, RenderableType
from rich.text import Text
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension
from syrupy.location import PyTestLocation

from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.select import Selection
from proton_bench.analysis.why.answer import why
from proton_bench.cli.show import show
from proton_bench.formats.registry import read_steps
from proton_bench.gate.history.history import History
from proton_bench.model.device import Variant
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile
from proton_bench.report.text.history import HistoryReport
from proton_bench.report.text.summary import summary_lines
from proton_bench.report.text.tree import print_report
from proton_bench.report.text.why import WhyReport, WhyRowReport

ROOT = Path(__file__).parents[2]
SCREENS = ROOT / "tests" / "data" / "screens"
# What each shows: layers and the host, operators and kernels, Python frames, samples of kernels,
# scopes inside kernels, a timeline with graphs.
PROFILES = {
    "training": ROOT / "docs" / "pictures" / "train.proton",
    "eager": ROOT / "tests" / "data" / "upstream" / "eager-tree.hatchet",
    "python": ROOT / "tests" / "data" / "upstream" / "eager-python.hatchet",
    "samples": ROOT / "tests" / "data" / "upstream" / "matmul-pcsampling.hatchet",
    "inside": ROOT / "tests" / "data" / "upstream" / "intra-default-tree.hatchet",
    "graph": ROOT / "tests" / "data" / "upstream" / "graph-trace.chrome_trace.gz",
}
LINES = 30
WIDTHS = [80, 120, 200]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(file: Path, width: int, *, colours: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    terminal = Terminal()
    console = Console(
        file=terminal,
        width=width,
        height=LINES,
        color_system="256" if colours else None,
        force_terminal=True,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    monkeypatch.setattr("proton_bench.cli.show.open_console", lambda: console)
    monkeypatch.chdir(file.parent)
    selection = Selection(by_size=True, readable=Readable())
    show(Path(file.name), selection=selection, frames=FrameFormat.SHORT, fits_screen=True)
    return terminal.getvalue()


class Screens(SingleFileSnapshotExtension):
    """One file per screen, in one folder."""

    file_extension = "txt"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        """Return the name that the test gives."""
        return str(index)

    def serialize(self, data: Any, **_: object) -> bytes:
        """Return the text as it stands in the file."""
        return str(data).encode()

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """Return the folder of all screens."""
        return str(SCREENS)


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(Screens)


@pytest.mark.parametrize("colours", [False, True], ids=["plain", "colours"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PROFILES)
def test_first_screen(
    name: str,
    width: int,
    colours: bool,
    monkeypatch: pytest.MonkeyPatch,
    golden: SnapshotAssertion,
) -> None:
    found = screen(PROFILES[name], width, colours=colours, monkeypatch=monkeypatch)

    assert found == golden(name=f"{name}-{width}{'-colours' if colours else ''}")
    lines = Text.from_ansi(found).plain.splitlines()
    assert len(lines) < LINES
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PROFILES)
def test_summary(name: str, width: int, golden: SnapshotAssertion) -> None:
    file = PROFILES[name]

    lines = summary_lines(read_steps([file])[0], file.name, width)

    assert "\n".join(lines) == golden(name=f"{name}-{width}-summary")


def counted_run() -> Profile:
    """Return a run with counters: a layer each for products, copies, small and waiting kernels."""
    small = Variant(grid=(48, 1, 1), block=(128, 1, 1), registers=64)
    use = DeviceUse(None, 0, busy_ns=700_000_000, idle_ns=100_000_000, launches=900)
    return counted_profile(
        Kernel(
            path="net (Net)/net.lm_head (Linear)/aten::mm/ampere_fp16_s16816gemm_fp16_256x128_nn",
            time_ns=3e8,
            units={"tensor": 0.82, "dram": 0.31, "sm_active": 0.97},
            error=0.005,
        ),
        Kernel(
            path="net (Net)/net.norm (LayerNorm)/aten::copy_/copy_kernel",
            time_ns=2e8,
            units={"tensor": 0.0, "dram": 0.76, "sm_active": 0.99},
            error=0.01,
        ),
        Kernel(
            path="net (Net)/net.proj (Linear)/aten::mm/ampere_sgemm_128x64_nn",
            time_ns=1.5e8,
            units={"tensor": 0.02, "dram": 0.1, "sm_active": 0.3},
            variant=small,
        ),
        Kernel(
            path="net (Net)/net.attn (Attention)/attention_kernel",
            time_ns=5e7,
            count=100,
            units={"tensor": 0.1, "dram": 0.2, "sm_active": 0.9},
        ),
        use=use,
        gpus_at_start=[{"name": "NVIDIA H200"}],
    )


def why_screen(profile: Profile, name: str, width: int, path: str | None) -> str:
    answer = why(profile, path)
    report = WhyReport(answer, name) if path is None else WhyRowReport(answer)
    return plain_screen(report, width)


def plain_screen(report: RenderableType, width: int) -> str:
    """Return what a terminal of this width shows, without colours."""
    console = Console(
        file=Terminal(),
        width=width,
        color_system=None,
        force_terminal=True,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    print_report(console, report)
    text = console.file
    assert isinstance(text, Terminal)
    return Text.from_ansi(text.getvalue()).plain


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["counted", "training", "eager", "samples", "graph"])
def test_why(name: str, width: int, golden: SnapshotAssertion) -> None:
    profile = read_steps([PROFILES[name]])[0] if name in PROFILES else counted_run()

    found = why_screen(profile, f"{name}.proton", width, None)

    assert found == golden(name=f"{name}-{width}-why")
    lines = found.splitlines()
    assert len(lines) <= 23  # the prompt of the shell is below
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("path", ["lm_head", "proj/sgemm", "attn"])
def test_why_of_a_row(path: str, golden: SnapshotAssertion) -> None:
    found = why_screen(counted_run(), "counted.proton", 80, path)

    assert found == golden(name=f"counted-80-why-{path.replace('/', '-')}")
    assert max(map(len, found.splitlines())) <= 80


def nightly() -> History:
    """Return 40 nights of a model: a step with a new version, a slow drift, and an improvement."""
    drift = [(4 * number, 0.015) for number in range(1, 10)]
    times = {
        "net.attn/flash_fwd_kernel": stepped(40, (26, 0.06)),
        "net.mlp/triton_poi_fused_gelu": stepped(40, *drift, seed=2) - 0.7,
        "net.lm_head/ampere_fp16_s16816gemm_fp16_256x128_nn": stepped(40, (9, -0.1), seed=3) + 1.2,
        "net.norm/layer_norm_kernel": stepped(40, seed=4) - 1.5,
    }
    points = [
        replace(
            each,
            source=f"main@20231115T{number:06}-{revision(number)[:8]}",
            tools={"torch": "2.6.0" if number < 26 else "2.7.0"},
        )
        for number, each in enumerate(points_of_times(times))
    ]
    return judged(points)


@pytest.mark.parametrize("width", [80, 120])
def test_history(width: int, golden: SnapshotAssertion) -> None:
    found = plain_screen(HistoryReport(nightly(), everything=True, judged=True), width)

    assert found == golden(name=f"nightly-{width}-history")
    assert max(map(len, found.splitlines())) <= width
