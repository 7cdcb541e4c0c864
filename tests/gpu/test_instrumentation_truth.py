"""Reports of an instrumented kernel agree with other readings of the same thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.errors import ProtonError
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.session import SessionOptions, open_session

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from reference.cycle_records import Layout, read_records  # noqa: E402 - after what may skip

if torch.cuda.is_available():
    from instrumented_kernels import (
        BufferTap,
        Recorded,
        Vectors,
        product,
        record,
        record_timeline,
    )

    from benchmarks.instrumentation.known_cycles import CYCLES_PER_STEP, chain_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

# Ids follow the order in which scopes first stand in the kernel.
PATHS = {
    0: ("load",),
    1: ("load", "load_x"),
    2: ("load", "load_y"),
    3: ("loop",),
    4: ("loop", "fma"),
    5: ("store",),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "clock32": {"optimizations": "clock32"},
    "sched_stores": {"optimizations": "sched_stores"},
    "clock32 and sched_stores": {"optimizations": "clock32,sched_stores"},
    "global": {"buffer_type": "global"},
    "global and clock32": {"buffer_type": "global", "optimizations": "clock32"},
    "warp 0": {"sampling_strategy": "selective", "sampling_options": "0"},
    "warps 1 and 3": {"sampling_strategy": "selective", "sampling_options": "1,3"},
    "small": {"buffer_size": 512},
    "small, warps 0 and 2": {
        "sampling_strategy": "selective",
        "sampling_options": "0,2",
        "buffer_size": 256,
    },
    "mma": {},
}


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """End every session, however the test went."""
    yield
    proton.finalize()


def tapped(folder: Path, work: Any, **options: Any) -> tuple[Recorded, list[bytes]]:
    """Record a function; return the tree and the profile buffer as the last launch left it."""
    buffers: list[bytes] = []

    def run() -> None:
        with BufferTap() as tap:
            work()
            buffers.append(tap.bytes())

    return record(folder, run, **options), buffers


@pytest.mark.parametrize("rounds", [3, 100])
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("name", list(OPTIONS))
def test_the_sums_of_the_gpu_are_those_of_the_host(
    name: str, warps: int, rounds: int, tmp_path: Path
) -> None:
    options = OPTIONS[name]
    ids = tuple(int(each) for each in options.get("sampling_options", "").split(",") if each)
    if ids and max(ids) >= warps:
        pytest.skip("the program has fewer warps than are selected")
    mode = proton.mode.MMA() if name == "mma" else proton.mode.Default(**options)
    vectors = Vectors(programs=37)

    recorded, [buffer] = tapped(tmp_path, lambda: vectors.steps(rounds, warps), mode=mode)

    wide = "clock32" not in options.get("optimizations", "")
    found = read_records(buffer, Layout(len(buffer) // 37, warps, ids, wide))
    host = {PATHS[scope]: durations for scope, durations in found.durations.items()}
    gpu = recorded.scopes("steps")
    assert {path: (node.instances, node.cycles) for path, node in gpu.items()} == {
        path: (len(durations), sum(durations)) for path, durations in host.items()
    }
    for path, node in gpu.items():
        assert (node.least, node.most) == (min(host[path]), max(host[path])), path
    assert recorded.kernel("steps", "lost_records") == found.lost
    assert recorded.kernel("steps", "kept_records") == found.kept
    assert recorded.kernel("steps", "unpaired_records") == found.unpaired
    vectors.check_steps(rounds)


def multiplied(size: int = 2048, *, stages: int = 1) -> Any:
    """Multiply two matrices in 256 programs and check the result."""
    # Not torch's own generator: an abandoned capture of another test may hold it.
    numbers = torch.Generator(device="cuda").manual_seed(0)
    shape = {"device": "cuda", "dtype": torch.float16, "generator": numbers}
    a, b = (torch.randn(size, size, **shape) for _ in range(2))
    c = torch.empty_like(a)
    grid = (size // 128, size // 128)
    made = product[grid](c, a, b, size, size, TILE=128, TILE_K=64, num_warps=8, num_stages=stages)
    torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-1)
    return made


def test_no_record_of_a_product_is_lost(tmp_path: Path) -> None:
    # 130 records a warp; in shared memory the compiler keeps 128 of each of eight warps.
    mode = proton.mode.Default(buffer_type="global")

    recorded = record(tmp_path, multiplied, mode=mode)

    scopes = recorded.scopes("product")
    assert recorded.kernel("product", "lost_records") == 0
    assert recorded.kernel("product", "unpaired_records") == 0
    steps, programs, warps = 2048 // 64, 256, 8
    assert {path: node.instances for path, node in scopes.items()} == {
        ("load",): steps * programs * warps,
        ("dot",): steps * programs * warps,
        ("store",): programs * warps,
    }


@pytest.mark.parametrize("size", [8192, 4096])
def test_lost_records_are_reported(size: int, tmp_path: Path) -> None:
    mode = proton.mode.Default(buffer_size=size)

    recorded = record(tmp_path, multiplied, mode=mode)

    lost, kept = (recorded.kernel("product", name) for name in ("lost_records", "kept_records"))
    of_a_warp = size // 8 // 8
    assert lost == (130 - of_a_warp) * 256 * 8, f"lost {lost}, kept {kept}"
    assert kept == of_a_warp * 256 * 8
    assert recorded.kernel("product", "lossy_programs") == 256
    assert recorded.kernel("product", "lossy_warps") == 256 * 8
    assert recorded.scopes("product")[("store",)].instances == 256 * 8


@pytest.mark.parametrize("length", [512, 1024, 4096])
def test_a_chain_of_known_length_takes_as_long_as_it_must(length: int, tmp_path: Path) -> None:
    results: list[Any] = []

    recorded = record(
        tmp_path,
        lambda: results.extend(chain_of(length) for _ in range(5)),
        mode=proton.mode.Default(optimizations="time_shift"),
    )

    [node] = recorded.scopes("known_chain").values()
    expected = CYCLES_PER_STEP * length
    mean = node.cycles / node.instances
    assert node.least == pytest.approx(expected, rel=0.02), f"mean {mean:.1f} of {expected}"
    for ours, reference in results:
        torch.testing.assert_close(ours, reference)


def test_the_difference_of_two_chains_needs_no_calibration(tmp_path: Path) -> None:
    least = []
    for length in (1024, 3072):
        recorded = record(tmp_path, lambda length=length: [chain_of(length) for _ in range(5)])
        [node] = recorded.scopes("known_chain").values()
        least.append(node.least)

    difference = least[1] - least[0]
    assert difference == pytest.approx(2048 * CYCLES_PER_STEP, rel=0.02), f"least {least}"


def test_a_timeline_is_in_true_nanoseconds(tmp_path: Path) -> None:
    options = SessionOptions(name=str(tmp_path / "cupti"), backend="cupti")
    timed = open_session(options)

    rows = record_timeline(tmp_path, lambda: [chain_of(4096) for _ in range(5)])

    [path] = timed.finalize(formats=("proton",))
    profile = read_profile(path)
    [times] = [
        each
        for row, each in profile.distributions["time (ns)"]
        if profile.name(row) == "known_chain"
    ]
    chains = [row for row in rows if row.name == "chain"]
    assert (times.n, len(chains)) == (5, 5 * 4), {row.name for row in rows}
    cycles = CYCLES_PER_STEP * 4096
    for row in chains:
        # An SM clock of 0.8 to 2.2 GHz, and no scope outlasts its kernel.
        assert cycles / 2200 < row.duration_us < cycles / 800, row
        assert row.duration_us * 1000 < times.maximum, (row, times)
    longest = max(row.duration_us for row in chains) * 1000
    assert longest > times.minimum / 3, f"scope {longest} ns, kernel {times.minimum} ns"


def test_scopes_stand_below_the_kernel_that_cupti_timed(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        with proton.scope("step"):
            for _ in range(3):
                vectors.steps()

    recorded = record(tmp_path, work, backend="cupti+instrumentation")

    profile = recorded.profile
    rows = [row for row in range(len(profile)) if profile.path(row)[-2:] == ("step", "steps")]
    timed = [row for row in rows if profile.columns["time (ns)"].values[row] > 0]
    assert len(timed) == 1, recorded.paths()
    below = {profile.name(child) for child in profile.children(timed[0])}
    assert below == {"load", "loop", "store"}, recorded.paths()
    assert profile.columns["count"].values[timed[0]] == 3
    names = {profile.name(row) for row in range(len(profile))}
    assert not any("proton_bench" in name for name in names), f"the profiler's own kernels: {names}"


def test_a_grid_over_the_byte_limit_is_refused(tmp_path: Path) -> None:
    vectors = Vectors(programs=1000)
    mode = proton.mode.Default(byte_limit=1 << 20)

    with pytest.raises(Exception, match=r"byte_limit|bytes") as raised:
        record(tmp_path, vectors.steps, mode=mode)

    assert str(1000 * 8320) in str(raised.value).replace(",", "").replace(" ", ""), raised.value


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("default:buffer_size=1000", "buffer_size"),
        ("default:granularity=cta", "granularity"),
        ("default:buffer_strategy=flush", "buffer_strategy"),
        ("default:sampling_strategy=selective:sampling_options=9", "9"),
        ("nothing", "nothing"),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_name(mode: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ProtonError, match=said):
        record(tmp_path, Vectors().steps, mode=mode)


def test_chosen_programs_only(tmp_path: Path) -> None:
    vectors = Vectors(programs=10)

    recorded = record(tmp_path, vectors.steps, mode=proton.mode.Default(cta="0,4-6"))

    assert recorded.scopes("steps")[("store",)].instances == 4 * 4
