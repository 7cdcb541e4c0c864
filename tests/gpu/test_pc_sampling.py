"""Samples of program counters on a GPU: hot lines, how many there are, where they stand."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import no_session_left

import proton_bench as proton
from proton_bench.analysis.kernels.gpu_facts import SamplingFacts, sampling_facts
from proton_bench.analysis.kernels.source_lines import SampledSource, sampled_source
from proton_bench.formats.registry import read_profile
from proton_bench.mode import PCSampling
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.recording.session.session import SessionOptions, open_session
from proton_bench_plugins.cupti.privileges import Permission, read_privileges

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

__all__ = ["no_session_left"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("only_sampler"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
    pytest.mark.skipif(
        read_privileges().permission is Permission.REFUSED, reason=read_privileges().text
    ),
]

# Largest difference between estimated and exact shares, in points of percent.
NEAR = 0.03
EXAMPLES = Path(__file__).parents[2] / "examples"


# Each hot line is some dozen instructions of a loop, whose counter, comparison and branch are three
# of the line with the `for`: what a compiler may move to a neighbouring line is little.
@triton.jit  # type: ignore[untyped-decorator]
def two_hot_lines(x, out, first, second, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    for _ in range(first):  # the first loop
        value = tl.exp(value) * 0.1  # the first hot line
    for _ in range(second):  # the second loop
        value = tl.sqrt(value * value + 0.5)  # the second hot line
    tl.store(out + offsets, value)


@triton.jit  # type: ignore[untyped-decorator]
def other_kernel(x, out, rounds, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    for _ in range(rounds):
        value = tl.exp(value) * 0.1
    tl.store(out + offsets, value)


def line_of(kernel: Any, text: str) -> int:
    """Return the number of the one line of a kernel's source that has a text."""
    lines, start = inspect.getsourcelines(kernel.fn)
    (found,) = (start + place for place, line in enumerate(lines) if text in line)
    return found


@dataclass(frozen=True)
class Sampled:
    """A run: its profile, facts and lines."""

    profile: Profile
    facts: SamplingFacts
    source: SampledSource

    def shares(self, file: str) -> dict[int, float]:
        """Return each line's share of the samples in one file."""
        files = self.source.files
        found = next(sampled for sampled in files if f"/{sampled.path}".endswith(f"/{file}"))
        total = found.samples.total
        return {line: found.lines[line].total / total for line in found.lines}

    def rows(self, name: str) -> list[int]:
        return [row for row in range(len(self.profile)) if self.profile.name(row) == name]


Record = Callable[..., Sampled]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    """Run a function in a session that samples."""

    def run(work: Callable[[], object], mode: PCSampling | str = "pcsampling") -> Sampled:
        work()  # compiles
        torch.cuda.synchronize()
        options = SessionOptions(name=str(tmp_path / "x"), backend="cupti", mode=mode)
        session = open_session(options)
        work()
        torch.cuda.synchronize()
        [path] = session.finalize(formats=("proton",))
        profile = read_profile(path)
        facts = sampling_facts(profile)
        assert facts is not None
        assert not facts.error, facts.error
        # Without samples this says why: no ratio below divides by none.
        return Sampled(profile, facts, sampled_source(profile))

    yield run
    torch.cuda.synchronize()


def run_hot_lines(launches: int = 40) -> None:
    x = torch.rand(1 << 20, device="cuda")
    out = torch.empty_like(x)
    for _ in range(launches):
        two_hot_lines[(x.numel() // 1024,)](x, out, 600, 200, BLOCK=1024)


# -- lines ---------------------------------------------------------------------------------------
def test_both_hot_lines_are_found_with_the_shares_of_exact_samples(record: Record) -> None:
    hot = [line_of(two_hot_lines, f"the {word} hot line") for word in ("first", "second")]
    loops = [line_of(two_hot_lines, f"the {word} loop") for word in ("first", "second")]

    estimated = record(run_hot_lines, PCSampling(1024)).shares(__file__)
    exact = record(run_hot_lines, PCSampling(1024, exact="launch")).shares(__file__)

    for shares in (estimated, exact):
        assert sorted(sorted(shares, key=lambda line: -shares[line])[:2]) == sorted(hot), shares
        assert sum(shares.get(line, 0.0) for line in hot + loops) > 0.9, shares
    for line in hot:
        assert estimated[line] == pytest.approx(exact[line], abs=NEAR)


def run_softmax() -> None:
    softmax = importlib.import_module("softmax").softmax
    x = torch.randn(8192, 4096, device="cuda")
    for _ in range(30):
        softmax(x)


def run_matmul() -> None:
    matmul = importlib.import_module("matmul").matmul
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    for _ in range(30):
        matmul(a, b)


def run_layer_norm() -> None:
    layer_norm = importlib.import_module("layer_norm").layer_norm
    x = torch.randn(8192, 2048, device="cuda")
    weight, bias = torch.ones(2048, device="cuda"), torch.zeros(2048, device="cuda")
    for _ in range(30):
        layer_norm(x, weight, bias, 1e-5)


@pytest.mark.parametrize(
    ("work", "file", "words"),
    [
        (run_softmax, "softmax.py", ("tl.load", "tl.exp", "tl.sum", "tl.store", "tl.max")),
        (run_matmul, "matmul.py", ("tl.dot", "tl.load")),
        (run_layer_norm, "layer_norm.py", ("tl.load", "tl.sum", "tl.store")),
    ],
    ids=["softmax", "matmul", "layer_norm"],
)
def test_the_hot_line_of_an_example_is_that_of_exact_samples(
    work: Callable[[], None],
    file: str,
    words: tuple[str, ...],
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))

    estimated = record(work, PCSampling("auto")).shares(file)
    exact = record(work, PCSampling(1024, exact="launch")).shares(file)

    hottest = max(exact, key=lambda line: exact[line])
    assert estimated[hottest] == pytest.approx(max(estimated.values()), abs=NEAR)
    assert estimated[hottest] == pytest.approx(exact[hottest], abs=NEAR)
    source = (EXAMPLES / file).read_text().splitlines()
    assert any(word in source[hottest - 1] for word in words), source[hottest - 1]


def test_lines_stand_below_their_kernel_and_library_kernels_have_their_own(record: Record) -> None:
    """Upstream's test_pcsampling."""

    def work() -> None:
        with proton.scope("init"):
            x = torch.ones((1024, 4096), device="cuda")
        with proton.scope("test"):
            out = torch.empty_like(x)
            for _ in range(40):
                other_kernel[(4096,)](x, out, 200, BLOCK=1024)
                torch.sum(x)

    run = record(work, "pcsampling:interval=1024")

    samples = run.profile.column("num_samples")
    lines = [row for row in range(len(run.profile)) if run.profile.kind(row) is FrameKind.LINE]
    assert any("@" in run.profile.name(row) and samples.values[row] > 0 for row in lines)
    assert {run.profile.kind(int(run.profile.parents[row])) for row in lines} == {FrameKind.KERNEL}
    bare = [name for name, counts in run.source.unplaced if counts.total > 0]
    assert any("reduce" in name for name in bare)


# -- how many, and whose -------------------------------------------------------------------------
def test_no_sample_is_lost(record: Record) -> None:
    run = record(run_hot_lines, PCSampling(1024))

    raw = run.profile.provenance["collectors"]["cupti"]["pc_sampling"]
    known = raw["samples"] + raw["dropped"] + raw["of_driver_kernels"] + raw["own"]
    assert raw["total"] == known
    assert run.source.samples.total == raw["samples"]
    assert run.facts.period_cycles == 1024 << run.facts.doubled


def test_samples_without_an_issue_are_a_part_of_all_samples(record: Record) -> None:
    """CUPTI's total counts those with a reason, and not the same ones again."""
    run = record(run_hot_lines, PCSampling(1024))

    columns = run.profile.columns
    mark = "not_issued_"
    reasons = [name.removeprefix(mark) for name in columns if name.startswith(mark)]
    assert reasons
    for reason in reasons:
        idle, every = (columns[f"{kind}_{reason}"] for kind in ("not_issued", "stalled"))
        assert (every.values[idle.valid] >= idle.values[idle.valid]).all(), reason


def test_an_interval_is_the_nearest_power_of_two_and_a_longer_one_takes_fewer(
    record: Record,
) -> None:
    often = record(run_hot_lines, PCSampling(1000))
    seldom = record(run_hot_lines, PCSampling(8192))

    assert often.facts.period_cycles == 1024 << often.facts.doubled
    assert seldom.facts.period_cycles == 8192
    expected = often.facts.samples * often.facts.period_cycles / 8192
    assert seldom.facts.samples == pytest.approx(expected, rel=0.2)


def test_kernel_times_are_recorded_beside_samples(record: Record) -> None:
    run = record(run_hot_lines, PCSampling(4096))

    (kernel,) = run.rows("two_hot_lines")
    assert run.profile.inclusive("count")[kernel] == 40
    assert run.profile.inclusive("time (ns)")[kernel] > 0
    assert run.profile.inclusive("num_samples")[kernel] > 0


def in_two_scopes() -> None:
    x = torch.rand(1 << 20, device="cuda")
    out = torch.empty_like(x)
    for _ in range(20):
        with proton.scope("long"):
            two_hot_lines[(1024,)](x, out, 900, 0, BLOCK=1024)
        with proton.scope("short"):
            two_hot_lines[(1024,)](x, out, 300, 0, BLOCK=1024)


@pytest.mark.parametrize("exact", ["off", "scope", "launch"])
def test_scopes_share_the_samples_of_a_kernel_by_its_time(exact: str, record: Record) -> None:
    run = record(in_two_scopes, PCSampling(1024, exact=exact))

    rows = {run.profile.path(row)[-2]: row for row in run.rows("two_hot_lines")}
    samples, times = (run.profile.inclusive(name) for name in ("num_samples", "time (ns)"))
    total = samples[rows["long"]] + samples[rows["short"]]
    assert total > 0, f"all samples were taken elsewhere: {run.facts}"
    expected = times[rows["long"]] / (times[rows["long"]] + times[rows["short"]])
    held = samples[rows["long"]] / total
    assert held == pytest.approx(expected, abs=NEAR)
    assert run.facts.is_estimated == (exact == "off")


def test_a_session_that_is_paused_takes_no_samples_meanwhile(tmp_path: Path) -> None:
    options = SessionOptions(name=str(tmp_path / "x"), backend="cupti", mode=PCSampling(1024))
    session = open_session(options)
    run_hot_lines(5)
    session.deactivate(flushing=True)
    x = torch.rand(1 << 20, device="cuda")
    other_kernel[(1024,)](x, torch.empty_like(x), 2000, BLOCK=1024)
    torch.cuda.synchronize()
    session.activate()
    run_hot_lines(5)
    [path] = session.finalize(formats=("proton",))

    names = {read_profile(path).name(row) for row in range(len(read_profile(path)))}
    assert "two_hot_lines" in names
    assert "other_kernel" not in names


def test_sampling_starts_again_in_the_next_session(record: Record) -> None:
    first = record(run_hot_lines, PCSampling(2048))
    second = record(run_hot_lines, PCSampling(2048))

    assert first.facts.samples > 0
    assert second.source.samples.total == pytest.approx(first.source.samples.total, rel=0.2)
