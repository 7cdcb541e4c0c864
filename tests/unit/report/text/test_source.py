"""The annotated source: text beside samples, at any width, also without the file."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from fakes.samples import Line, sampled_profile
from rich.cells import cell_len
from rich.console import Console

from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.analysis.metrics.derive import AvailableMetrics
from proton_bench.model.profile import Profile
from proton_bench.report.text.source import SourceReport, source_document
from proton_bench.report.text.tree import ListReport, print_report
from proton_bench.support.console import open_console

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "softmax.py"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def profile_of(path: object, **facts: Any) -> Profile:
    lines = (
        Line(f"{path}:12@softmax_kernel", {"long_scoreboard": 600, "wait": 100}, 300),
        Line(f"{path}:14@softmax_kernel", {"barrier": 150, "selected": 50}, 100),
        Line(f"{path}:25@softmax_kernel", {"wait": 4, "selected": 1}),
    )
    profile = sampled_profile(lines)
    object.__setattr__(profile, "provenance", profile.provenance.updated(**facts))
    return profile


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(
    profile: Profile,
    width: int | None = None,
    threshold: float = 0.5,
    *,
    root: Path = Path("/"),
) -> list[str]:
    file = io.StringIO() if width is None else Terminal()
    console = open_console(file)
    if width is not None:
        console.width = width
        console.no_color = True
    print_report(console, SourceReport(sampled_source(profile), profile, root, threshold))
    return [_plain(line) for line in file.getvalue().splitlines()]


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_hot_lines_stand_in_their_source(source: Path) -> None:
    lines = printed(profile_of(source))

    # Of its kernels: 50 + 1 + 200 selected, 410 + 100 in which nothing was issued.
    assert lines[0] == "1 445 samples: 17.4 % issued, 47.3 % stalled, 35.3 % not issued"
    start = lines.index(f"{source}  62.6 % of the samples")
    assert lines[start + 1 : start + 10] == [
        "samples  not issued  top stall                  line  source",
        "                                                  10  line 10",
        "                                                  11  line 11",
        " 48.4 %      42.9 %  long_scoreboard 85.7 %       12  line 12",
        "                                                  13  line 13",
        " 13.8 %      50.0 %  barrier 75.0 %               14  line 14",
        "                                                  15  line 15",
        "                                                  16  line 16",
        "  1 more line with 0.3 % in all; -t 0 shows every line",
    ]


def test_every_line_is_shown_on_request_with_gaps_between(source: Path) -> None:
    lines = printed(profile_of(source), threshold=0.0)

    numbers = [line.split()[-1] for line in lines if "line " in line and line[:60].strip()]
    assert "25" in numbers
    assert any(line.strip() == "..." for line in lines)
    assert not any("more line" in line for line in lines)


def test_what_the_stalls_mean_is_reported_with_the_vendors_page(source: Path) -> None:
    text = "\n".join(printed(profile_of(source)))

    legend = text[text.index("Legend") :]
    for reason in ("long_scoreboard", "barrier", "math_pipe_throttle"):
        assert f"  {reason}: " in legend
    assert "lg_throttle" not in legend
    assert "https://docs.nvidia.com/nsight-compute/" in legend


def test_samples_without_a_line_are_listed(source: Path) -> None:
    lines = printed(profile_of(source))

    start = next(n for n, line in enumerate(lines) if line.startswith("Samples without a line"))
    assert lines[start + 1] == " 34.6 %  math_pipe_throttle 60.0 %  sm90_xmma_gemm_f16"
    assert lines[start + 2] == "  2.8 %  wait 100 %                 softmax_kernel"


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 160])
def test_no_line_crosses_the_edge_of_a_terminal(source: Path, width: int) -> None:
    source.write_text(TEXT.replace("line 12\n", "x = " + "wide " * 60 + "\n"))

    lines = printed(profile_of(source), width)

    assert max(map(cell_len, lines)) <= width
    assert any("12  x = " in line and line.endswith("…") for line in lines)
    # Narrow terminals have the top stall and not the share without an issue.
    assert any("not issued  top stall" in line for line in lines) == (width >= 100)
    assert any("top stall" in line for line in lines) == (width >= 60)


def test_pipes_get_lines_whole(source: Path) -> None:
    source.write_text(TEXT.replace("line 12\n", "x = " + "wide " * 60 + "y\n"))

    assert any(line.endswith("wide y") for line in printed(profile_of(source)))


def test_a_file_that_is_not_here_leaves_numbers_and_functions() -> None:
    lines = printed(profile_of("/nowhere/at/all.py"))

    assert any(
        line.startswith("  the file is not below /: lines are shown without") for line in lines
    )
    assert any(line.endswith("  12  (softmax_kernel)") for line in lines)


def test_a_file_of_another_machine_is_found_below_this_folder(
    source: Path,
) -> None:
    lines = printed(profile_of("/root/there/src/softmax.py"), root=source.parent.parent)

    assert f"  text of {source}" in lines
    assert any(line.endswith("12  line 12") for line in lines)


def test_a_relative_path_is_looked_for_where_the_run_was(source: Path) -> None:
    lines = printed(profile_of("src/softmax.py", directory=str(source.parent.parent)))

    assert any(line.endswith("12  line 12") for line in lines)


def test_a_file_that_changed_since_is_doubted(source: Path) -> None:
    changed_ns = source.stat().st_mtime_ns

    newer = "\n".join(printed(profile_of(source, end_time_ns=changed_ns - 1)))
    older = "\n".join(printed(profile_of(source, end_time_ns=changed_ns + 1)))

    assert "changed after the run: lines may have moved" in newer
    assert "lines may have moved" not in older


def test_a_file_that_is_shorter_now_is_doubted(source: Path) -> None:
    source.write_text("one\n")

    text = "\n".join(printed(profile_of(source)))

    assert "shorter" in text
    assert "(softmax_kernel)" in text


def test_text_cannot_move_the_cursor(source: Path) -> None:
    source.write_bytes(TEXT.replace("line 12", "\x1b[2Jline\t12\xff").encode("latin-1"))

    text = "\n".join(printed(profile_of(source)))

    assert "\x1b" not in text
    assert "\\x1b[2Jline" in text


def test_files_that_cannot_be_read_are_not_here(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")

    for path in (tmp_path, tmp_path / "pipe.py", "bad\0name.py"):
        lines = printed(profile_of(path))
        assert any("lines are shown without their text" in line for line in lines)


def test_document_holds_lines_texts_and_meanings(source: Path) -> None:
    profile = profile_of(source)

    document = source_document(
        sampled_source(profile), profile, name="x.proton", threshold=0.5, root=source.parent
    )

    assert document["schema"] == "proton_bench.source"
    assert (document["samples"], document["period_cycles"]) == (1445, 1024)
    assert document["attribution"] == "estimated by GPU time"
    (file,) = document["files"]
    assert [(line["line"], line["text"]) for line in file["lines"]] == [
        (12, "line 12"),
        (14, "line 14"),
    ]
    assert file["lines"][0]["stalls"] == {"long_scoreboard": 600, "wait": 100}
    assert document["kernels_without_lines"][0]["name"] == "sm90_xmma_gemm_f16"
    assert document["reasons"]["barrier"]["meaning"].startswith("waits for the other warps")


def test_a_long_name_takes_no_more_than_some_lines() -> None:
    found = AvailableMetrics((f"{'x' * 100_000} (ns)",), (), (f"{'y' * 50_000}/ms",))
    text = io.StringIO()

    Console(file=text).print(ListReport(found), crop=False)

    assert len(text.getvalue()) < 1000
    assert "more characters" in text.getvalue()
