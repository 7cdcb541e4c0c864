from __future__ import annotations

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.words.header import inside_notes


def profile(*kernels: dict[str, int]) -> Profile:
    builder = ProfileBuilder()
    for number, facts in enumerate(kernels):
        builder.add(0, f"k{number}", FrameKind.KERNEL, metrics=facts)
    return builder.build()


def lossy(lost: int) -> dict[str, int]:
    return {"kept_records": 90, "lost_records": lost, "lossy_warps": 1, "lossy_programs": 2}


def test_profiles_without_scopes_inside_kernels_need_no_note() -> None:
    assert inside_notes(profile({"time (ns)": 1})) == ()
    assert inside_notes(profile({"kept_records": 4, "instrumented_launches": 1})) == ()


def test_kernels_that_lost_records_are_named_with_what_helps() -> None:
    (note,) = inside_notes(profile(lossy(10)))

    assert note.startswith(
        "LOST: k0 keeps 90.0 % of the records inside it; 10 older records of 1 warp in 2 programs"
    )
    assert "buffer_size" in note


def test_of_many_kernels_those_that_lost_most_are_named() -> None:
    notes = inside_notes(profile(*(lossy(lost) for lost in range(1, 8))))

    assert [note.split()[1] for note in notes[:5]] == ["k6", "k5", "k4", "k3", "k2"]
    assert notes[5:] == ("LOST: records inside 2 more kernels",)


def test_times_of_instrumented_kernels_are_said_to_be_perturbed() -> None:
    (note,) = inside_notes(profile({"time (ns)": 1, "instrumented_launches": 1}, {"time (ns)": 1}))

    assert note == (
        "PERTURBED: the time of 1 kernel includes the cost of recording the scopes inside"
    )
