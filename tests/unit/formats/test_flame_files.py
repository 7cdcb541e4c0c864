"""Flame graphs for other tools hold every value that has a width, at its call path."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from fakes.flames import Stacks, folded_stacks, pprof_stacks, speedscope_stacks
from fakes.profiles import deep_profile, training_profile
from hypothesis import given
from reference.profile_view import profiles

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.export.flame_files import flame_frame, flame_metrics, flame_rows
from proton_bench.formats.registry import decode_profile, find_format, read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

DATA = Path(__file__).parents[2] / "data"
FORMATS = ("speedscope", "folded", "pprof")
HOSTILE = (
    "<script>alert(1)</script>",
    "a;b;c 5",
    "line\nbreak\r\u2028",
    "\x00\x1b[31m",
    'quo"te\\',
    "C:\\x.py:12@f",
    "名前 🚀",
    "",
    " ",
)


def encoded(profile: Profile, name: str) -> bytes:
    return find_format(name).encode(profile)


def losses(profile: Profile, name: str) -> str:
    return "\n".join(find_format(name).losses(profile))  # type: ignore[attr-defined]


def expected(profile: Profile, metric: str, *, root: bool = True) -> Stacks:
    """Return the own value of each path."""
    rows = flame_rows(profile)
    (own,) = (values for column, values in flame_metrics(rows) if column.spec.name == metric)
    found: Stacks = Counter()
    for row in range(len(rows)):
        path, here = [], row
        while here >= 0:
            path.append(flame_frame(rows, here).name)
            here = int(rows.parents[here])
        if own[row] > 0:
            stack = tuple(reversed(path))
            found[stack if root or len(stack) == 1 else stack[1:]] += own[row].item()
    return found


def hostile() -> Profile:
    builder = ProfileBuilder()
    for place, name in enumerate(HOSTILE, 1):
        scope = builder.add(0, name, FrameKind.SCOPE)
        builder.add(scope, name, FrameKind.KERNEL, metrics={"time (ns)": place, "count": 1})
    return builder.build()


@given(profile=profiles())
def test_speedscope_holds_what_each_path_has(profile: Profile) -> None:
    try:
        metrics = flame_metrics(profile)
    except MetricError:
        return
    content = encoded(profile, "speedscope")

    for column, _ in metrics:
        wanted = expected(profile, column.spec.name)
        found = speedscope_stacks(content, column.spec.name)
        total = sum(wanted.values())
        assert set(found) <= set(wanted)
        for stack, weight in wanted.items():
            # Positions are sums: small floats vanish beside large ones.
            assert found[stack] == pytest.approx(weight, rel=1e-6, abs=1e-9 * total)


def test_whole_numbers_are_exact_in_all_formats() -> None:
    profile = read_profile(DATA / "upstream" / "eager-python.hatchet")

    wanted = expected(profile, "time (ns)")

    assert speedscope_stacks(encoded(profile, "speedscope"), "time (ns)") == wanted
    assert pprof_stacks(encoded(profile, "pprof"), "time") == wanted
    assert pprof_stacks(encoded(profile, "pprof"), "count") == expected(profile, "count")
    folded = folded_stacks(encoded(profile, "folded"))
    assert sum(folded.values()) == sum(wanted.values()) == profile.inclusive("time (ns)")[0]
    assert all("ROOT" not in stack for stack in folded)


def test_speedscope_fits_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DATA / "speedscope" / "file-format-schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)

    for profile in (training_profile(), hostile(), deep_profile(300)):
        document = json.loads(encoded(profile, "speedscope"))
        assert [error.message for error in validator.iter_errors(document)] == []


def test_python_frames_have_file_and_line() -> None:
    document = json.loads(encoded(training_profile(), "speedscope"))

    frames = document["shared"]["frames"]
    assert {"name": "forward", "file": "/home/me/model.py", "line": 3} in frames
    units = {each["name"]: each["unit"] for each in document["profiles"]}
    assert units == {"time (ns)": "nanoseconds", "count": "none", "flops16": "none"}


def test_hostile_names_come_back() -> None:
    profile = hostile()

    assert speedscope_stacks(encoded(profile, "speedscope"), "time (ns)") == expected(
        profile, "time (ns)"
    )
    assert pprof_stacks(encoded(profile, "pprof"), "time") == expected(profile, "time (ns)")
    lines = encoded(profile, "folded").decode().splitlines()
    assert len(lines) == len(HOSTILE)
    assert "a:b:c 5;a:b:c 5 2" in lines
    assert "';' in names became ':'" in losses(profile, "folded")


def test_ordinary_names_stay_and_nothing_is_said_of_them() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1})

    assert losses(builder.build(), "folded") == ""


@pytest.mark.parametrize("name", FORMATS)
def test_five_thousand_levels_are_written(name: str) -> None:
    profile = deep_profile(5000)

    content = encoded(profile, name)

    readers: dict[str, Callable[[bytes], Stacks]] = {
        "speedscope": lambda content: speedscope_stacks(content, "time (ns)"),
        "folded": folded_stacks,
        "pprof": lambda content: pprof_stacks(content, "time"),
    }
    assert sum(readers[name](content).values()) == 5000
    assert ("levels below 1000" in losses(profile, name)) == (name != "speedscope")


def test_what_has_no_width_is_left_out_and_counted() -> None:
    builder = ProfileBuilder()
    builder.declare("label", Aggregation.PROPERTY)
    metrics = {"time (ns)": 5.0, "label": "x", "odd": -3, "nothing": float("nan")}
    builder.add(0, "k", metrics=metrics)
    builder.add(0, "l", metrics={"time (ns)": -2.0, "odd": 2.5})
    profile = builder.build(provenance={"host": "h"})

    noted = losses(profile, "speedscope")

    assert "cannot hold provenance" in noted
    assert "these metrics are left out: label, nothing" in noted
    assert "negative values are left out of time (ns), odd" in noted
    assert "rounded to whole numbers: odd" in losses(profile, "pprof")
    assert "left out: label, odd, nothing" in losses(profile, "folded")
    assert speedscope_stacks(encoded(profile, "speedscope"), "odd") == {("ROOT", "l"): 2.5}


def test_folded_takes_time_in_any_unit_and_reports_rounding() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"count": 7, "time (us)": 2.6})
    profile = builder.build()

    assert folded_stacks(encoded(profile, "folded")) == {("k",): 3}
    assert "rounded to whole numbers: time (us)" in losses(profile, "folded")


@pytest.mark.parametrize("name", FORMATS)
def test_a_profile_without_a_metric_that_adds_up_is_refused(name: str) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"label": "x"})

    with pytest.raises(MetricError, match="needs a metric that adds up"):
        encoded(builder.build(), name)


@pytest.mark.parametrize("name", ["speedscope", "folded", "pprof", "csv", "parquet"])
def test_they_are_written_and_not_read(name: str) -> None:
    suffix = find_format(name).suffixes[0]

    with pytest.raises(ProfileFormatError, match=f"the format {name} can be written but not read"):
        decode_profile(b"something else", f"x{suffix}")


def test_devices_are_named_where_there_are_several() -> None:
    builder = ProfileBuilder()
    for index in (0, 1):
        builder.add(0, "k", metrics={"time (ns)": 1 + index}, device=Device("CUDA", index))

    found = speedscope_stacks(encoded(builder.build(), "speedscope"), "time (ns)")

    assert found == {("ROOT", "k [CUDA:0]"): 1, ("ROOT", "k [CUDA:1]"): 2}


def test_sums_beyond_64_bits_are_floats() -> None:
    builder = ProfileBuilder()
    for name in "ab":
        builder.add(0, name, metrics={"time (ns)": 2**62})

    found = speedscope_stacks(encoded(builder.build(), "speedscope"), "time (ns)")

    assert found["ROOT", "b"] == 2.0**62


# -- go ------------------------------------------------------------------------------------------
@pytest.fixture
def pprof(require: Any, tmp_path: Path) -> Callable[[Profile, str], list[str]]:
    """Return what ``go tool pprof`` prints of a profile with an option."""
    require("go", which("go") is not None, "there is no go on the path")

    def run(profile: Profile, option: str) -> list[str]:
        path = tmp_path / "x.pb.gz"
        path.write_bytes(encoded(profile, "pprof"))
        command = ["go", "tool", "pprof", option, "-nodecount=0", "-symbolize=none", str(path)]
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin",
            "HOME": str(tmp_path),
        }
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_pprof_shows_the_total_and_the_kernels(
    pprof: Callable[[Profile, str], list[str]],
) -> None:
    lines = pprof(training_profile(), "-top")

    assert "Type: time" in lines
    assert any("4ms, 100% of 4ms total" in line for line in lines)
    kernels = {line.split()[-1]: line.split()[0] for line in lines if "kernel_" in line}
    assert kernels == {"kernel_1": "1ms", "kernel_3": "3ms"}


def test_pprof_takes_hostile_and_deep_profiles(
    pprof: Callable[[Profile, str], list[str]],
) -> None:
    assert any("45ns total" in line for line in pprof(hostile(), "-top"))
    assert any("5000ns total" in line for line in pprof(deep_profile(5000), "-top"))
    assert pprof(hostile(), "-raw")
