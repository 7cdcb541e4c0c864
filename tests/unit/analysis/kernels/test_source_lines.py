"""Samples by line of the source, and samples without a line."""

from __future__ import annotations

import pytest
from fakes.profiles import training_profile
from fakes.samples import GPU, SOFTMAX, sampled_profile, samples

from proton_bench.analysis.kernels.source_lines import SourceLine, parse_line, sampled_source
from proton_bench.analysis.view.names import NameFilter
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def test_a_line_has_the_samples_of_its_row() -> None:
    source = sampled_source(sampled_profile())

    (file,) = source.files
    assert file.path == "/src/softmax.py"
    assert {line: counts.total for line, counts in file.lines.items()} == {
        12: 700,
        14: 200,
        17: 50,
    }
    assert file.functions[12] == ("softmax_kernel",)
    hot = file.lines[12]
    assert hot.waits() == [("stalled_long_scoreboard", 600), ("stalled_wait", 100)]
    assert [hot.share(part) for part in ("issued", "stalled", "not_issued")] == [
        0.0,
        400 / 700,
        300 / 700,
    ]


def test_no_sample_is_lost() -> None:
    profile = sampled_profile()

    source = sampled_source(profile)

    held = sum(file.samples.total for file in source.files)
    held += sum(counts.total for _, counts in source.unplaced)
    assert held == source.samples.total == profile.inclusive("num_stalled_samples")[0]
    assert sum(source.samples.parts.values()) == source.samples.total


def test_samples_without_a_line_stand_at_their_kernel() -> None:
    source = sampled_source(sampled_profile())

    assert [(name, counts.total) for name, counts in source.unplaced] == [
        ("sm90_xmma_gemm_f16", 500),
        ("softmax_kernel", 40),
    ]


def two_kernels() -> Profile:
    """Return one line that two kernels share, and another file that is hotter."""
    builder = ProfileBuilder()
    for name in ("first", "second"):
        row = builder.add(0, name, FrameKind.KERNEL, device=GPU)
        builder.add(
            row, f"lib.py:3@{name}", FrameKind.LINE, metrics=samples({"wait": 8, "selected": 2})
        )
        builder.add(row, f"/a/{name}.py:7@{name}", FrameKind.LINE, metrics=samples({"wait": 30}))
    return builder.build()


def test_a_line_of_several_kernels_is_one_line() -> None:
    source = sampled_source(two_kernels())

    library = next(file for file in source.files if file.path == "lib.py")
    assert library.lines[3].total == 20
    assert library.functions[3] == ("first", "second")
    assert [file.samples.total for file in source.files] == [30, 30, 20]


def test_rows_are_chosen_by_name() -> None:
    source = sampled_source(two_kernels(), NameFilter(include="first"))

    assert source.samples.total == 40
    assert {file.path for file in source.files} == {"lib.py", "/a/first.py"}
    with pytest.raises(UsageError, match="-i nothing"):
        sampled_source(two_kernels(), NameFilter(include="nothing"))


def test_a_profile_without_samples_says_how_to_get_them() -> None:
    with pytest.raises(MetricError, match="proton run -m pcsampling"):
        sampled_source(training_profile())


def test_samples_that_are_all_zero_are_none() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics=samples({}), device=GPU)

    with pytest.raises(UsageError, match="no kernel ran while it sampled"):
        sampled_source(builder.build())


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"period_cycles": 4096, "samples": 0}, "none for longer than the period of 4096 cycles"),
        ({"error": "the GPU is sampled by another"}, "the GPU is sampled by another"),
    ],
)
def test_a_run_whose_sampling_gave_nothing_says_why(facts: dict[str, object], reason: str) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5}, device=GPU)
    profile = builder.build(provenance={"collectors": {"cupti": {"pc_sampling": facts}}})

    with pytest.raises(MetricError, match=reason):
        sampled_source(profile)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/a/b.py:12@k", SourceLine("/a/b.py", 12, "k")),
        ("C:\\x.py:3@f@g", SourceLine("C:\\x.py", 3, "f@g")),
        ("b.py:7@", SourceLine("b.py", 7, "")),
        ("/a/@/b.cu:9@void k<int>(T:1)", SourceLine("/a/@/b.cu", 9, "void k<int>(T:1)")),
        ("/a/b.py:12@x@y:3@z", SourceLine("/a/b.py", 12, "x@y:3@z")),
        ("k.ptx:44@k", SourceLine("k.ptx", 44, "k")),
        ("kernel", None),
        ("b.py:x@k", None),
        ("b.py:99999999999@k", None),
    ],
)
def test_names_of_lines(name: str, expected: SourceLine | None) -> None:
    assert parse_line(name) == expected


def test_every_line_of_the_fixture_is_a_place() -> None:
    assert all(parse_line(line.place) for line in SOFTMAX)
