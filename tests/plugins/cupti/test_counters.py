"""The mode ``counters`` through ``proton`` on the doubles: what a file says, and refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.analysis.kernels.gpu_facts import CounterFacts, counter_facts
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.model.metrics.counter_columns import NOT_JOINED
from proton_bench.model.profile import Profile
from proton_bench.plugin.backend import assign_modes
from proton_bench.recording.counters.metric_sets import METRIC_SETS
from proton_bench.report.words.header import counter_losses
from proton_bench_plugins.cupti import BACKEND
from proton_bench_plugins.cupti.settings import Counting, read_settings

__all__ = ["cupti_doubles", "run"]

TESTS = Path(__file__).parents[2]
# Kernels one after the other, as fast as the device runs them, until `is_over`.
HEAD = f"""
import json, sys, time; sys.path.insert(0, {str(TESTS)!r})
from fakes.doubles import Cupti
import proton_bench as proton
from proton_bench.recording.session.recording import live_sessions
gpu = Cupti()
gpu.context_created(1)

def work(is_over):
    end = time.monotonic() + 30
    while not is_over() and time.monotonic() < end:
        with proton.scope("copies"):
            gpu.launch_with("copy_kernel", duration_ns=20_000)
        with proton.scope("products"):
            gpu.launch_with("gemm_kernel", duration_ns=10_000)
        next_ns = time.monotonic_ns() + 40_000
        while time.monotonic_ns() < next_ns:
            pass
"""
# What the program has heard of: one that ends before says that it was too short.
HEARD = """
session = live_sessions()[0]
def heard(*names):
    facts = session._lease.facts()["cupti"]["counters"]
    return sum(facts[name] for name in names)
"""
BURSTS = HEARD + "work(lambda: heard('bursts') >= 3)\n"
REFUSED = HEARD + "work(lambda: heard('lost_bursts', 'refused_devices') >= {calls})\n"
# Three phases in which bursts begin and end, each with a scope of its own. It ends when the first
# two were written, or late.
PHASES = (
    HEARD
    + """
from pathlib import Path
for phase in range(3):
    bursts = heard("bursts") + 3
    with proton.scope(f"phase_{phase}"):
        work(lambda: heard("bursts") >= bursts)
    if phase < 2:
        proton.data.advance_phase()
parts = [Path(f"out.part_{phase}.SUFFIX") for phase in range(2)]
work(lambda: all(part.exists() for part in parts))
print([part.exists() for part in parts])
"""
)

FLUSHING = "counters:burst_ms=20+periodic_flushing:format=proton"
# A phase whose join STORES, until it is written or the program ENDS.
UNJOINED = (
    HEARD
    + """
import os, signal, threading
from pathlib import Path
from proton_bench.recording.counters import store
joining = threading.Event()
def stores(session, phase, bursts):
    joining.set()
    STORES
store._store = stores
work(lambda: heard("bursts") >= 2)
proton.data.advance_phase()
work(joining.is_set)
ENDS
"""
)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, cupti_doubles: Doubles) -> Run:
    """Return ``run(program, mode, **variables)``: the program under ``proton run``."""

    def run_program(
        program: str, mode: str = "counters", data: str = "tree", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(HEAD + program, encoding="utf-8")
        command = [sys.executable, "-m", "proton_bench", "-n", "out", "-m", mode, "-b", "cupti"]
        command += ["-d", data]
        return subprocess.run(
            [*command, str(script)],
            cwd=tmp_path,
            env=cupti_doubles.environment(
                FAKE_CUPTI_CLOCK="real", FAKE_CUPTI_GPU=str(tmp_path / "gpu"), **variables
            ),
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run_program


def recorded(folder: Path) -> tuple[Profile, CounterFacts]:
    profile = read_profile(folder / "out.proton")
    facts = counter_facts(profile)
    assert facts is not None
    return profile, facts


def counting(mode: str) -> Counting | None:
    (assigned,) = assign_modes([BACKEND], mode)
    return read_settings(assigned, {}).counting


def test_a_profile_says_how_counters_were_sampled(run: Run, tmp_path: Path) -> None:
    done = run(BURSTS)

    assert (done.returncode, "counters" in done.stderr) == (0, False), done.stderr
    profile, facts = recorded(tmp_path)
    assert facts.bursts >= 2
    assert facts.error == ""
    said = profile.provenance["collectors"]["cupti"]
    assert said["clock"] == "vendor"
    assert tuple(said["counters"]["metrics"]) == METRIC_SETS["speed-of-light"][0]
    assert list(said["counters"]["devices"]) == [0]


def test_bursts_hold_the_nodes_that_ran_and_metrics_can_be_added_to_them(
    run: Run, tmp_path: Path
) -> None:
    take = """
(session,) = live_sessions()
session.deactivate(flushing=True)
core = session.core
bursts = core.take_bursts()
names = core.counter_metrics
nodes = sorted({int(node) for burst in bursts for node in burst["nodes"]})
times = core.times_of_nodes(nodes)
core.set_metric_of_nodes("dram_busy (ns)", nodes, [1.5, 2.0])
core.set_metric_of_nodes("dram_busy (ns)", nodes, [0.5, 0.0], phase=0)
shapes = [(len(b["start_ns"]), len(b["end_ns"]), *b["counts"].shape) for b in bursts]
print(json.dumps([len(names), shapes, nodes, times.tolist(), [b["device"] for b in bursts]]))
try:
    core.set_metric_of_nodes("x", [10_000], [1.0])
except proton.errors.UsageError as error:
    print("refused")
"""
    done = run(BURSTS + take, "counters:metrics=tensor:interval_us=20:burst_ms=4")

    assert done.returncode == 0, done.stderr
    listed, refused = done.stdout.splitlines()
    metrics, shapes, nodes, times, devices = eval(listed)
    assert metrics == len(METRIC_SETS["tensor"][0])
    assert shapes
    assert all(start == end == n and m == metrics for start, end, n, m in shapes)
    profile, _ = recorded(tmp_path)
    assert {profile.devices[at].index for at in devices} == {0}
    by_name = {profile.name(row): row for row in range(len(profile))}
    rows = [by_name["copy_kernel"], by_name["gemm_kernel"]]
    assert len(nodes) == len(rows)
    assert times == profile.column("time (ns)").values[rows].tolist()
    assert profile.column("dram_busy (ns)").values[rows].tolist() == [2.0, 2.0]
    assert profile.inclusive("dram_busy (ns)")[0] == 4.0
    assert refused == "refused"


@pytest.mark.parametrize(
    ("data", "form", "suffix"), [("tree", "proton", "proton"), ("trace", "perfetto", "pftrace")]
)
def test_phases_that_are_written_meanwhile_have_counters(
    data: str, form: str, suffix: str, run: Run, tmp_path: Path
) -> None:
    mode = f"counters:burst_ms=20+periodic_flushing:format={form}"  # the machine may be busy
    done = run(PHASES.replace("SUFFIX", suffix), mode, data)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[True, True]"
    for phase in range(3):
        profile = read_profile(tmp_path / f"out.part_{phase}.{suffix}")
        (top,) = [row for row in profile.children(0) if profile.name(row) == f"phase_{phase}"]
        below = range(top, int(profile.subtree_end[top]))
        kernel = next(row for row in below if profile.name(row) == "copy_kernel")
        sampled = profile.inclusive("counter_sampled (ns)")
        assert 0 < sampled[top] <= profile.inclusive("time (ns)")[0]
        whole = profile.column("counter_time (ns)").values[kernel]
        assert whole == profile.column("time (ns)").values[kernel]
        assert "dram_busy (ns)" in profile.columns


def test_a_phase_that_cannot_be_joined_is_written_and_says_so(run: Run, tmp_path: Path) -> None:
    ends = "work(Path('out.part_0.proton').exists)"
    program = UNJOINED.replace("STORES", "raise ArithmeticError('no inverse')")
    done = run(program.replace("ENDS", ends), FLUSHING)

    assert done.returncode == 0, done.stderr
    assert "could not be joined: ArithmeticError: no inverse" in done.stderr
    profile = read_profile(tmp_path / "out.part_0.proton")
    assert profile.dropped[NOT_JOINED] == 1
    (loss,) = counter_losses(profile)
    assert loss.startswith("NO COUNTERS: they were not joined")


def test_phases_share_bursts_and_nothing_is_counted_twice_or_lost(run: Run, tmp_path: Path) -> None:
    # One session has all phases, the other one none, and both the same bursts.
    # A busy machine joins phases slowly, and more than 32 that wait would go without counters.
    mode = "counters:burst_ms=40+periodic_flushing:format=proton"
    program = f"""{HEARD}
from pathlib import Path
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import open_session
whole = open_session(SessionOptions(name="whole", backend="cupti", mode={mode!r}))
phase, next_s = 0, time.monotonic()
def is_over():
    global phase, next_s
    if time.monotonic() >= next_s:
        next_s = time.monotonic() + 0.008
        if phase - len(list(Path().glob("out.part_*[0-9].proton"))) < 16:  # no partial ones
            phase = proton.data.advance_phase(session.id)
    return heard("bursts") >= 5
work(is_over)
session.deactivate(flushing=True)
whole.deactivate(flushing=True)
whole.finalize(["proton"])
"""
    done = run(program, mode)

    assert done.returncode == 0, done.stderr
    whole = read_profile(tmp_path / "whole.proton")
    parts = [read_profile(part) for part in tmp_path.glob("out.part_*.proton")]
    facts = counter_facts(whole)
    assert facts is not None
    joined = [part for part in parts if "counter_sampled (ns)" in part.columns]
    assert len(joined) > facts.bursts  # which began in one phase and ended in a later one
    for name in ("counter_sampled (ns)", "time (ns)"):
        sums = [part.inclusive(name)[0] for part in parts if name in part.columns]
        assert sum(sums) == pytest.approx(whole.inclusive(name)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("cuptiPmSamplingEnable=26", "another process samples this GPU"),
        ("cuptiPmSamplingEnable=35", "this user may not read hardware counters"),
        ("cuptiPmSamplingEnable=43", "MIG slice cannot be profiled"),
    ],
)
def test_a_run_goes_on_without_counters_that_are_refused(
    failure: str, words: str, run: Run, tmp_path: Path
) -> None:
    program = REFUSED.format(calls=1) + "sys.exit(7)\n"
    done = run(program, FAKE_CUPTI_FAIL=failure)

    assert done.returncode == 7
    assert done.stderr.count(words) == 1
    profile, facts = recorded(tmp_path)
    assert (facts.bursts, words in facts.error) == (0, True)
    assert profile.inclusive("count")[0] > 0
    view = [sys.executable, "-m", "proton_bench", "view", "out.proton"]
    shown = subprocess.run(view, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    refusals = [each for each in shown.stdout.splitlines() if each.startswith("NO COUNTERS: ")]
    assert (shown.returncode, len(refusals)) == (0, 1)


def test_bursts_that_fail_end_the_sampling_of_the_device(run: Run, tmp_path: Path) -> None:
    program = REFUSED.format(calls=3)
    done = run(program, FAKE_CUPTI_FAIL="cuptiPmSamplingStart=26")

    assert done.returncode == 0, done.stderr
    _, facts = recorded(tmp_path)
    assert facts.bursts == 0


def test_metrics_are_those_of_a_set_or_named() -> None:
    named = "lts__t_sectors.sum+dram__bytes_read.sum"

    memory = counting("counters:metrics=memory:interval_us=5:burst_ms=20")
    chosen = counting(f"counters:metrics={named}:copies=on")
    assert memory == Counting(sets=METRIC_SETS["memory"], interval_us=5, burst_ms=20)
    assert chosen is not None
    assert set(named.split("+")) < set(chosen.sets[0])


@pytest.mark.parametrize("mode", ["", "pcsampling", "counters=gpm", "pcsampling:counters=gpm"])
def test_other_modes_have_no_bursts(mode: str) -> None:
    assert counting(mode) is None


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("counters:metrics=everything", "speed-of-light"),
        ("counters:metrics=", "speed-of-light"),
        ("counters:interval_us=0", "from 1 to 1000"),
        ("counters:burst_ms=1000", "from 1 to 100"),
        ("counters:exact=scope", "no option 'exact'"),
        ("counters=all", "choose gpm"),
        ("copies=on:counters=exact", "ncu --csv"),
        ("counters:counters=gpm", "no option 'counters'"),
        ("pcsampling:counters=exact", "ncu --csv"),
    ],
)
def test_wrong_options_are_refused(mode: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        counting(mode)
