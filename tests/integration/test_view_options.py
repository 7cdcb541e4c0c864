"""Options of ``proton view`` that show one run in other ways."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.profiles import deep_profile
from rich.cells import cell_len

from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.provenance import Provenance

H100 = Device("CUDA", 0, "90", 132, 1_830_000, 2_619_000, 5120)
HOSTILE = (
    "<script>alert(1)</script>",
    "a.*(+[b]?{2}^$|\\",
    "[bold red]x[/bold red]",
    "[/bold]",
    ":smile:",
    "\x1b[31mred\x07",
    "line\nbreak",
    "(((((",
    "",
)
COUNTERS = """\
==PROF== Connected to process 12
"ID","Kernel Name","Grid Size","dram__bytes.sum","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","Kbyte","%"
"0","copy","(1, 1, 1)","4","50"
"1","copy","(1, 1, 1)","6","50"
"2","gemm","(1, 1, 1)","1,024","80"
"3","other","(1, 1, 1)","9","5"
"""

Show = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def show(proton_here: Show) -> Show:
    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return proton_here("view", *words, **environment)

    return run


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """Return two scopes that both launch ``copy``; one of them also launches ``gemm``."""
    builder = ProfileBuilder()
    for scope, kernels in (("b", {"copy": 30, "_ZN2at4fillIfEEvPf": 20}), ("a", {"gemm": 50})):
        row = builder.add(0, scope, FrameKind.SCOPE)
        for name, time in {**kernels, "copy": 30}.items():
            metrics = {"time (ns)": 1000 * time, "count": 1, "flops16": 1e6, "bytes": 4096}
            variant = Variant(grid=(1, 1, 1), block=(128, 1, 1), registers=32)
            builder.add(row, name, FrameKind.KERNEL, metrics=metrics, device=H100, variant=variant)
    path = tmp_path / "run.proton"
    write_profile(builder.build(), path)
    return path


@pytest.fixture
def counters(tmp_path: Path) -> Path:
    path = tmp_path / "deep.csv"
    path.write_text(COUNTERS)
    return path


def shown(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.splitlines()


def table(lines: Sequence[str]) -> list[list[str]]:
    """Return the words of each row, from the one of the root to the legend."""
    first = next(place for place, line in enumerate(lines) if line.endswith("  ROOT"))
    return [line.replace("│", "").split() for line in lines[first : lines.index("", first)]]


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("proton: error: ")
    return line


def test_a_pipe_gets_the_largest_rows_unless_it_asks_for_all(show: Show, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    for number in range(300):
        name = f"kernel_{number:x}z"
        builder.add(
            0, name, FrameKind.KERNEL, metrics={"time (ns)": 3 ** min(number, 30), "count": 1}
        )
    write_profile(builder.build(), tmp_path / "many.proton")

    short = shown(show("many.proton"))
    whole = shown(show("many.proton", "--all"))

    assert len(table(short)) <= 50
    assert short[-1].endswith("not shown; --all shows every row")
    assert len(table(whole)) == 301


def test_scopes_beside_operators_stay_and_other_rows_are_counted(
    show: Show, tmp_path: Path
) -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    host = Device("CPU", 0)
    builder.add(0, "conv", FrameKind.OP, metrics={"time (ns)": 7000, "count": 1}, device=host)
    builder.add(0, "sleep", FrameKind.SCOPE, metrics={"wall (ns)": 290_000})
    builder.add(0, "fit.py:3@f", FrameKind.PYTHON, metrics={"loss": 1.0})
    write_profile(builder.build(), tmp_path / "host.proton")

    lines = shown(show("host.proton"))

    assert [row[-1] for row in table(lines)] == ["ROOT", "sleep", "conv"]
    assert table(lines)[1][:2] == ["290.000", "97.6"]
    assert lines[-1] == "1 row is not shown, with other metrics only: -l lists what -m can show"


def test_default_view_has_time_share_and_count(show: Show, run_file: Path) -> None:
    lines = shown(show(run_file))

    assert lines[3].split() == ["time/us", "(inc)", "time/%", "(inc)", "count", "name"]
    assert table(lines)[0] == ["130.000", "100.0", "4", "ROOT"]
    assert table(lines)[1] == ["80.000", "61.5", "-", "├─", "a"]
    assert lines[-1].startswith("(inc): with all rows below; count: calls of the row")


@pytest.mark.parametrize(
    ("order", "expected"),
    [("time,count", ["a", "gemm", "copy", "b", "copy"])],
)
def test_siblings_are_sorted(show: Show, run_file: Path, order: str, expected: list[str]) -> None:
    rows = table(shown(show(run_file, "-m", order)))

    assert [row[-1] for row in rows][1 : len(expected) + 1] == expected


def test_flat_is_a_table_of_kernels_with_the_totals_of_the_tree(show: Show, run_file: Path) -> None:
    rows = table(shown(show(run_file, "--flat", "-m", "time/us,count")))

    assert rows == [
        ["130.000", "4", "ROOT"],
        ["60.000", "2", "copy"],
        ["50.000", "1", "gemm"],
        ["20.000", "1", "fill<float>"],
    ]


@pytest.mark.parametrize(
    ("words", "expected"), [([], "fill<float>"), (["--raw-names"], "_ZN2at4fillIfEEvPf")]
)
def test_names_of_kernels_are_short_unless_raw_ones_are_asked_for(
    show: Show, run_file: Path, words: list[str], expected: str
) -> None:
    text = "\n".join(shown(show(run_file, *words)))

    assert f"─ {expected}\n" in text


@pytest.mark.parametrize("expression", ["fill<float>", "_ZN2at4fill"])
def test_filters_match_shown_and_recorded_names(
    show: Show, run_file: Path, expression: str
) -> None:
    kept = table(shown(show(run_file, "--flat", "-m", "count", "-i", expression)))
    left = table(shown(show(run_file, "--flat", "-m", "count", "-e", expression)))

    assert [row[-1] for row in kept] == ["ROOT", "fill<float>"]
    assert [row[-1] for row in left] == ["ROOT", "copy", "gemm"]


def test_json_has_the_shown_text_beside_the_recorded_name(show: Show, run_file: Path) -> None:
    rows = json.loads(show(run_file, "--json").stdout)["rows"]

    assert {row["text"] for row in rows if row["name"] == "_ZN2at4fillIfEEvPf"} == {"fill<float>"}
    assert all(row["text"] == row["name"] for row in rows if row["name"] in ("gemm", "copy"))


SITE = "/me/x/.venv/lib/python3.11/site-packages"


@pytest.fixture
def framed(tmp_path: Path) -> Path:
    builder = ProfileBuilder()
    above = builder.add(0, "/me/x/train.py:3@step", FrameKind.PYTHON)
    above = builder.add(above, f"{SITE}/torch/module.py:1@_call", FrameKind.PYTHON)
    above = builder.add(above, f"{SITE}/torch/nn/linear.py:134@forward", FrameKind.PYTHON)
    for number in range(2):
        layer = builder.add(above, f"h.{number} (Block)", FrameKind.LAYER)
        builder.add(layer, "gemm", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    profile = replace(builder.build(), provenance=Provenance({"directory": "/me/x"}))
    write_profile(profile, tmp_path / "framed.proton")
    return tmp_path / "framed.proton"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (
            [],
            [
                "train.py:3 step",
                "torch/nn/linear.py:134 forward [+1 frame of torch]",
                *("h.* (Block) x2", "gemm"),
            ],
        ),
        (
            ["--all"],
            [
                *("train.py:3 step", "torch/module.py:1 _call", "torch/nn/linear.py:134 forward"),
                *("h.0 (Block)", "gemm", "h.1 (Block)", "gemm"),
            ],
        ),
        (
            ["-f", "function_line"],
            ["3@step", "134@forward [+1 frame of torch]", "h.* (Block) x2", "gemm"],
        ),
    ],
)
def test_library_frames_and_equal_layers_are_folded_unless_all_are_asked_for(
    show: Show, framed: Path, words: list[str], names: list[str]
) -> None:
    lines = shown(show(framed, "-m", "count (inc)", *words))

    assert [line.partition("─ ")[2] for line in lines if "─ " in line] == names


def test_upstreams_viewer_shows_rows_and_names_as_recorded(framed: Path) -> None:
    program = "import sys; from proton_bench.cli.viewer import main; sys.exit(main())"
    words = [sys.executable, "-c", program, "-m", "count", str(framed)]
    lines = shown(subprocess.run(words, capture_output=True, text=True, check=False))

    assert any(f"{SITE}/torch/module.py:1@_call" in line for line in lines)
    assert any(line.endswith("h.1 (Block)") for line in lines)


def test_bars_are_drawn_and_plain_where_the_output_is(
    show: Show, proton: Show, run_file: Path
) -> None:
    drawn = shown(show(run_file, "--bars", "--flat", "-m", "time"))
    words = ("view", run_file, "--bars", "--flat", "-m", "time")
    plain = shown(proton(*words, PYTHONIOENCODING="ascii"))

    assert drawn[4].split()[1:] == ["██████████", "ROOT"]
    assert plain[4].split()[1:] == ["##########", "ROOT"]
    assert plain[5].split()[1:] == ["#####", "copy"]


def test_counters_stand_in_the_tree_with_what_is_doubtful(
    show: Show, run_file: Path, counters: Path
) -> None:
    lines = shown(show(run_file, "--counters", counters, "--flat"))
    rows = table(lines)

    assert "3 of 4 launches matched; 1 launch of the profile not measured" in lines[3]
    assert lines[4:7] == [
        "UNMATCHED: 1 of other",
        "1 kernel was launched from several rows and paired only by order",
        "",
    ]
    assert [row[3:] for row in rows[:3]] == [
        ["1034000.000", "60.000", "ROOT"],
        ["10000.000", "50.000", "copy"],
        ["1024000.000", "80.000", "gemm"],
    ]


def test_counts_that_differ_make_the_join_ambiguous(
    show: Show, run_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("".join(line for line in COUNTERS.splitlines(True) if '"1","copy"' not in line))

    lines = shown(show(run_file, "--counters", path))
    document = json.loads(show(run_file, "--counters", path, "--json").stdout)

    assert any(
        line.startswith("AMBIGUOUS: copy (1, 1, 1): 1 launches measured, 2 in the profile")
        for line in lines
    )
    assert document["counters"]["shared_by_order"][0]["places"] == 2


def test_counters_are_shown_and_order_rows(show: Show, run_file: Path, counters: Path) -> None:
    words = ("--counters", counters, "-m", "DRAM__BYTES.SUM")

    rows = table(shown(show(run_file, *words, "--flat")))
    listed = shown(show(run_file, "--counters", counters, "-l"))

    assert [row[-1] for row in rows[:3]] == ["ROOT", "gemm", "copy"]
    assert "- dram__bytes.sum" in listed


def test_roofline_occupancy_and_launches(show: Show, run_file: Path) -> None:
    metrics = "roof_time/us,bound,roof_distance,intensity,occupancy,launches,util"

    lines = shown(show(run_file, "-m", metrics, "--flat"))

    assert lines[3].split()[:3] == ["roof_time/us", "(inc)", "bound"]
    assert table(lines)[0][1:2] == ["memory"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "nope"], "Metric nope is not found: recorded are bytes, count, flops16, time"),
        (["-m", "tim"], "did you mean 'time'"),
        (["--counters", "none.csv"], "cannot read counters from 'none.csv'"),
        (["--counters", "run.proton"], "has no heading with a column of kernel names"),
        (["-m", "p95_time/us"], "this file has no samples"),
        (["-m", "stalled_wait/samples"], "this file has no PC samples"),
    ],
)
def test_wrong_options_are_one_clear_line(
    show: Show, run_file: Path, words: list[str], message: str
) -> None:
    assert message in refused(show(run_file, *words))


def test_statistics_of_an_unknown_device_name_what_is_known(show: Show, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    metrics = {"time (ns)": 5, "bytes": 10}
    builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=Device("XPU", 0, "x1"))
    write_profile(builder.build(), tmp_path / "x.proton")

    line = refused(show("x.proton", "-m", "bound"))

    assert "XPU x1" in line
    assert "CUDA 75, 80" in line
    assert "proton_device_peaks" in line


# -- hostile files -------------------------------------------------------------------------------
@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    builder = ProfileBuilder()
    for place, name in enumerate(HOSTILE):
        metrics = {
            "time (ns)": -5 if place == 3 else 10 * place,
            "count": 1,
            "bytes": 5.0,
            "odd": float("nan") if place == 2 else float("inf") if place == 4 else 1.5,
        }
        device = Device("CUDA", place % 2, "90" if place % 2 else "foo", 1, 1, 1, 1)
        builder.add(0, name, FrameKind.KERNEL, metrics=metrics, device=device)
    path = tmp_path / "hostile.proton"
    write_profile(builder.build(), path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--flat", "--bars"],
        ["--raw-names"],
        ["-m", "odd,odd/%"],
        ["-m", "roof_time/us,launches,bound"],
        ["-i", "\\[/bold\\]"],
    ],
)
def test_hostile_names_and_values_are_shown_as_they_are(
    show: Show, hostile: Path, words: list[str]
) -> None:
    lines = shown(show(hostile, *words))
    text = "\n".join(lines)

    assert "[/bold]" in text
    assert "\x1b" not in text
    assert len(table(lines)) == (2 if "-i" in words else len(HOSTILE) + 1)


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (["-m", "time", "-d", "9000"], 5001),
        (["-d", "9000", "--raw-names", "--bars"], 5001),
        (["-m", "time,time/%", "-d", "9000", "-i", "level 4999"], 5001),
        (["--flat", "-m", "time", "--all"], 5001),
    ],
)
def test_tree_of_5000_levels_is_shown(
    show: Show, tmp_path: Path, words: list[str], rows: int
) -> None:
    write_profile(deep_profile(5000), tmp_path / "deep.proton")

    assert len(table(shown(show("deep.proton", *words)))) == rows


@pytest.mark.parametrize("words", [[], ["--flat"], ["--bars"], ["--json"]])
def test_empty_profiles_are_shown_with_a_warning(
    show: Show, tmp_path: Path, words: list[str]
) -> None:
    write_profile(ProfileBuilder().build(), tmp_path / "empty.proton")

    done = show("empty.proton", *words)

    assert done.returncode == 0
    assert "ROOT" in done.stdout
    assert "'empty.proton' is empty: it has no rows" in done.stderr


# -- terminals -----------------------------------------------------------------------------------
def on_terminal(width: int, *words: object) -> list[str]:
    """Return the output on a terminal of this width."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    for name in ("COLUMNS", "LINES", "FORCE_COLOR"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "proton_bench", "view", *map(str, words)]
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        os.close(terminal)
        received = b""
        while part := _read(control):
            received += part
    os.close(control)
    assert process.returncode == 0
    return received.decode().replace("\r", "").splitlines()


def _read(control: int) -> bytes:
    try:
        return os.read(control, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (40, ["-d", "9000"]),
        (60, ["--flat", "--bars"]),
        (40, ["-m", "time/ms,time/%,count,launches"]),
    ],
    ids=["deep", "flat", "wide"],
)
def test_no_line_crosses_the_edge_of_a_terminal(
    tmp_path: Path, hostile: Path, width: int, words: list[str]
) -> None:
    path = hostile
    if "-d" in words:
        path = tmp_path / "deep.proton"
        write_profile(deep_profile(5000), path)

    lines = on_terminal(width, path, *words)

    assert max(map(cell_len, lines)) <= width
    assert any(line.endswith("ROOT") for line in lines)
