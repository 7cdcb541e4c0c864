from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from reference.profile_view import profiles

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import nest_below
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile


def recorded() -> Profile:
    builder = ProfileBuilder()
    builder.set(0, "note", "of the root")
    top = builder.add(0, "step", FrameKind.SCOPE)
    kernel = builder.add(
        top,
        "k",
        FrameKind.KERNEL,
        metrics={"time (ns)": 5, "parts": [1, 2], "label": "x"},
        device=Device("CUDA", 0),
    )
    builder.set_distribution(kernel, "time (ns)", Distribution.from_samples([5.0]))
    return builder.build()


def test_one_row_holds_all_the_others() -> None:
    nested = nest_below(recorded(), "rank 2")

    nested.self_check()
    assert [nested.path(row) for row in range(len(nested))] == [
        (), ("rank 2",), ("rank 2", "step"), ("rank 2", "step", "k"),
    ]  # fmt: skip
    assert nested.kind(0) is FrameKind.ROOT
    assert nested.kind(1) is FrameKind.SCOPE
    assert nested.device(3) == Device("CUDA", 0)
    assert nested.column("time (ns)").to_list() == [None, None, None, 5]
    assert nested.column("parts").to_list() == [None, None, None, (1, 2)]
    assert nested.column("label").to_list() == [None, None, None, "x"]
    assert nested.distributions["time (ns)"].get(3) is not None


def test_what_the_root_had_moves_to_the_new_row() -> None:
    nested = nest_below(recorded(), "rank 2")

    assert nested.column("note").to_list() == [None, "of the root", None, None]


def test_the_use_of_devices_is_that_of_the_row() -> None:
    uses = (DeviceUse(None, 0, busy_ns=5), DeviceUse("step", 0, busy_ns=4))
    nested = nest_below(replace(recorded(), device_use=uses), "rank 2")

    assert nested.device_use == (DeviceUse(None, 0, busy_ns=5), DeviceUse("rank 2", 0, busy_ns=5))


@given(profiles())
def test_nothing_is_lost(profile: Profile) -> None:
    nested = nest_below(profile, "top")

    nested.self_check()
    assert len(nested) == len(profile) + 1
    for name, column in profile.columns.items():
        assert nested.column(name).to_list()[1:] == column.to_list()
        if column.kind.is_number:
            assert nested.inclusive(name)[1:].tolist() == profile.inclusive(name).tolist()
