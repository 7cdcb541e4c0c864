from __future__ import annotations

import pytest
from fakes.profiles import training_profile
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.metrics.occupancy import LIMITS, occupancy
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

H100 = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)


def launch(threads: int, registers: int, shared: int = 0, *, blocks: int = 10**6) -> Variant:
    return Variant(
        grid=(blocks, 1, 1), block=(threads, 1, 1), registers=registers, shared_bytes=shared
    )


@pytest.mark.parametrize(
    ("arch", "variant", "expected"),
    [
        # Figures of NVIDIA's occupancy calculator.
        ("90", launch(128, 32), 1.0),
        ("90", launch(128, 168), 12 / 64),
        ("90", launch(256, 64), 0.5),
        ("90", launch(128, 32, 100 * 1024), 8 / 64),
        ("86", launch(1024, 32), 32 / 48),
        ("75", launch(64, 32), 1.0),
        ("75", launch(32, 32), 0.5),
        ("89", launch(128, 255), 8 / 48),
        ("90", launch(128, 32, blocks=132), 4 / 64),
        ("90", launch(128, 32, blocks=66), 2 / 64),
        ("90", launch(1, 0), 32 / 64),
    ],
)
def test_occupancy_of_launches(arch: str, variant: Variant, expected: float) -> None:
    assert occupancy(variant, Device("CUDA", 0, arch, 132)) == pytest.approx(expected)


# Compute capability, threads, registers, bytes of shared memory -> resident blocks, as NVIDIA's
# cuda_occupancy.h of CUDA 13.0 computes them.
RESIDENT = [
    ("75", 64, 16, 0, 16),
    ("75", 512, 72, 0, 1),
    ("75", 512, 16, 59149, 1),
    ("80", 96, 16, 0, 21),
    ("80", 384, 16, 0, 5),
    ("80", 256, 16, 69287, 2),
    ("86", 32, 16, 0, 16),
    ("86", 96, 16, 0, 16),
    ("86", 128, 16, 65481, 1),
    ("87", 64, 16, 0, 16),
    ("87", 384, 16, 0, 4),
    ("87", 384, 16, 69360, 2),
    ("89", 96, 16, 0, 16),
    ("89", 96, 96, 0, 6),
    ("89", 128, 16, 27865, 3),
    ("90", 32, 16, 0, 32),
    ("90", 64, 40, 0, 24),
    ("90", 384, 16, 165861, 1),
    ("100", 32, 16, 0, 32),
    ("100", 96, 16, 0, 21),
    ("100", 64, 16, 58907, 3),
    ("101", 32, 16, 0, 24),
    ("101", 96, 72, 0, 9),
    ("101", 128, 16, 56137, 4),
    ("103", 96, 16, 0, 21),
    ("103", 512, 40, 0, 3),
    ("103", 96, 16, 185047, 1),
    ("110", 64, 16, 0, 24),
    ("110", 128, 16, 0, 12),
    ("110", 128, 16, 112765, 2),
    ("120", 32, 16, 0, 24),
    ("120", 128, 16, 0, 12),
    ("120", 128, 16, 43499, 2),
    ("121", 96, 16, 0, 16),
    ("121", 64, 128, 0, 8),
    ("121", 512, 16, 96756, 1),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks"), RESIDENT)
def test_resident_blocks_are_those_of_nvidias_header(
    arch: str, threads: int, registers: int, shared: int, blocks: int
) -> None:
    found = occupancy(launch(threads, registers, shared), Device("CUDA", 0, arch, 100))

    assert found == pytest.approx(blocks * -(-threads // 32) / LIMITS[arch].warps)


@given(
    arch=st.sampled_from(sorted(LIMITS)),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    shared=st.integers(0, 228 * 1024),
)
def test_occupancy_is_a_share_that_more_use_never_raises(
    arch: str, threads: int, registers: int, shared: int
) -> None:
    device = Device("CUDA", 0, arch, 100)
    found = occupancy(launch(threads, registers, shared), device)
    more = occupancy(launch(threads, max(registers + 8, 8), shared + 1024), device)

    assert found is not None
    assert more is not None
    assert 0.0 <= more <= found <= 1.0


def test_unknown_device_or_launch_has_no_occupancy() -> None:
    assert occupancy(launch(128, 32), Device("HIP", 0, "gfx942")) is None
    assert occupancy(Variant(block=(0, 1, 1)), H100) is None


def two_variants() -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    for variant, time in ((launch(128, 32), 300), (launch(256, 64), 100)):
        builder.add(
            scope, "k", FrameKind.KERNEL, metrics={"time (ns)": time}, device=H100, variant=variant
        )
    builder.add(scope, "host", FrameKind.OP, metrics={"time (ns)": 50})
    return builder.build()


def test_variants_and_scopes_show_the_mean_over_time() -> None:
    tree = build_tree(two_variants(), ["occupancy", "time"], Selection())

    assert [tree.name(row) for row in range(len(tree))] == ["ROOT", "scope", "k", "host"]
    assert tree.metrics[0].to_list() == [0.875, 0.875, 0.875, None]
    assert tree.metrics[1].to_list() == [450, 450, 400, 50]


def test_file_without_launches_says_so() -> None:
    with pytest.raises(MetricError, match=r"'occupancy' .*grid.*\.proton"):
        build_tree(training_profile(), ["occupancy"], Selection())


def test_unknown_limits_name_the_device_and_the_known_ones() -> None:
    builder = ProfileBuilder()
    builder.add(
        0, "k", metrics={"time (ns)": 1}, device=Device("HIP", 0, "gfx942"), variant=launch(64, 8)
    )

    with pytest.raises(MetricError, match=r"CUDA 75, 80, .*HIP gfx942"):
        build_tree(builder.build(), ["occupancy"], Selection())
