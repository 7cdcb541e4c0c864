"""``proton export`` to formats of other tools, from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.flames import folded_stacks, pprof_stacks, speedscope_stacks
from fakes.profiles import training_profile

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder

Capture = pytest.CaptureFixture[bytes]
SUFFIXES = {
    "speedscope": ".speedscope.json",
    "folded": ".folded",
    "pprof": ".pb.gz",
    "csv": ".csv",
    "parquet": ".parquet",
}
TOTALS: dict[str, Callable[[bytes], float]] = {
    "speedscope": lambda content: sum(speedscope_stacks(content, "time (ns)").values()),
    "folded": lambda content: sum(folded_stacks(content).values()),
    "pprof": lambda content: sum(pprof_stacks(content, "time").values()),
}


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_profile(training_profile(), tmp_path / "x.proton")
    return tmp_path


@pytest.mark.parametrize("name", SUFFIXES)
def test_the_file_stands_beside_the_profile(
    training: Path, capsysbinary: Capture, name: str
) -> None:
    if name == "parquet":
        pytest.importorskip("duckdb", reason="needs the extra store")

    assert main(["export", "x.proton", "--to", name]) == 0

    assert [path.name for path in sorted(training.iterdir())] == sorted(
        ["x.proton", f"x{SUFFIXES[name]}"]
    )
    assert all(
        line.startswith(b"proton: warning: ") for line in capsysbinary.readouterr().err.splitlines()
    )


@pytest.mark.parametrize("name", TOTALS)
def test_totals_reach_standard_output(training: Path, capsysbinary: Capture, name: str) -> None:
    assert main(["export", "x.proton", "--to", name, "-o", "-"]) == 0

    assert TOTALS[name](capsysbinary.readouterr().out) == 4_000_000


def test_the_suffix_alone_is_enough_from_python(tmp_path: Path) -> None:
    for name in ("speedscope", "folded", "csv"):
        write_profile(training_profile(), tmp_path / f"x{SUFFIXES[name]}")

    assert b"speedscope.app" in (tmp_path / "x.speedscope.json").read_bytes()
    assert folded_stacks((tmp_path / "x.folded").read_bytes())


@pytest.mark.parametrize("name", SUFFIXES)
def test_what_was_exported_is_not_a_profile(
    training: Path, capsysbinary: Capture, name: str
) -> None:
    (training / f"y{SUFFIXES[name]}").write_bytes(b"row,parent\n0,1\n")

    assert main(["view", f"y{SUFFIXES[name]}"]) == 2

    (line,) = capsysbinary.readouterr().err.splitlines()
    assert b"can be written but not read" in line


def test_a_profile_without_values_has_no_flame_graph(training: Path, capsysbinary: Capture) -> None:
    write_profile(ProfileBuilder().build(), training / "empty.proton")

    assert main(["export", "empty.proton", "--to", "speedscope"]) == 2

    (line,) = capsysbinary.readouterr().err.splitlines()
    assert b"needs a metric that adds up" in line
    assert not (training / "empty.speedscope.json").exists()
