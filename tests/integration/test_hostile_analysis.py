"""Hostile profiles in ``proton diff`` and ``proton query``: a right answer or one clear line."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import deep_profile
from fakes.runs import GPU

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.support.text import visible

NAMES = (
    "<script>alert(1)</script>",
    "[bold]x[/bold] [/bold]",
    "a.*(b|c)[^\\]+?$ {2}",
    "x' OR 1=1; DROP TABLE nodes; --",
    'say "so"',
    "| cell | `code` **b** @user",
    "\x1b[31mred\x1b]0;title\x07\n\r\t",
    "\u202eright-to-left",
    "{0} %s ${HOME}",
    "",
)
FORMS = {"diff": ([], ["--json"], ["--markdown"]), "query": ([], ["--json"], ["--csv"])}

Answer = Callable[..., str]


def write(
    path: Path, metric: str = "time (ns)", values: tuple[Any, ...] = (100,), **kinds: Any
) -> Path:
    """Write a profile with a scope for each hostile name, and a kernel of that name below it."""
    builder = ProfileBuilder()
    device = kinds.get("device", GPU)
    for place, name in enumerate(NAMES):
        scope = builder.add(0, name, FrameKind.SCOPE)
        metrics = {metric: values[place % len(values)], "count": 1}
        builder.add(scope, name, FrameKind.KERNEL, metrics=metrics, device=device)
    write_profile(builder.build(), path)
    return path


@pytest.fixture
def answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Answer:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Answer:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        (line,) = err.splitlines()
        assert (code, out) == (5 if "is empty: " in line else 2, "")
        return line

    return run


def query(*words: object) -> tuple[object, ...]:
    pytest.importorskip("duckdb", reason="needs the extra store")
    return ("query", *words)


@pytest.mark.parametrize("form", FORMS["diff"], ids=str)
def test_names_stay_names_in_comparisons(answer: Answer, tmp_path: Path, form: list[str]) -> None:
    write(tmp_path / "a.proton")
    write(tmp_path / "b.proton", values=(100, 150))

    text = answer("diff", "a.proton", "b.proton", "-t", "0", *form)

    assert "\x1b" not in text
    assert "\r" not in text
    if form == ["--json"]:
        assert {row["name"] for row in json.loads(text)["rows"]} == {"ROOT", *NAMES}
    elif form == ["--markdown"]:
        assert "<script>" not in text
        assert "\n| 0.100 | 0.150 | +0.050 |" in text
        table = [line for line in text.splitlines() if line.startswith("| ")]
        bars = [line.replace("\\|", "").count("|") for line in table]
        assert set(bars) == {bars[0]}
    else:
        assert "[bold]x[/bold] [/bold]" in text
        assert "<script>alert(1)</script>" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_found_by_a_regular_expression_that_is_escaped(
    answer: Answer, tmp_path: Path, name: str
) -> None:
    write(tmp_path / "a.proton")
    write(tmp_path / "b.proton", values=(120,))

    words = ["-t", "0", "--json", "-i", re.escape(name) + r"\Z"]
    found = json.loads(answer("diff", "a.proton", "b.proton", *words))

    assert {row["name"] for row in found["rows"]} == {"ROOT", name}
    assert found["rows"][0]["inclusive"]["change"] == 20 * len(NAMES)


@pytest.mark.parametrize("form", FORMS["query"], ids=str)
def test_names_stay_names_in_queries(answer: Answer, tmp_path: Path, form: list[str]) -> None:
    write(tmp_path / "a.proton")

    text = answer(*query("a.proton", "SELECT name FROM nodes WHERE depth = 1 ORDER BY node", *form))

    if form == ["--json"]:
        assert [row[0] for row in json.loads(text)["rows"]] == list(NAMES)
    elif form == ["--csv"]:
        assert [row[0] if row else "" for row in csv.reader(io.StringIO(text, newline=""))][1:] == [
            *map(visible, NAMES)
        ]
    else:
        assert "\x1b" not in text
        assert len(text.splitlines()) == 1 + len(NAMES) + 1


def test_five_thousand_levels_are_compared_and_queried(answer: Answer, tmp_path: Path) -> None:
    write_profile(deep_profile(5000), tmp_path / "a.proton")
    write_profile(deep_profile(5001), tmp_path / "b.proton")

    text = answer("diff", "a.proton", "b.proton", "-t", "0", "-d", "6000")
    document = json.loads(answer("diff", "a.proton", "b.proton", "--json", "-d", "6000"))
    deepest = answer(*query("b.proton", "SELECT max(depth) FROM nodes", "--csv"))

    assert "level 5000  NEW" in text
    assert len(document["rows"]) == 5002
    assert deepest.splitlines()[1] == "5001"
    assert (
        answer("diff", "a.proton", "b.proton", "--markdown", "-t", "0", "-d", "6000").count("\n| ")
        > 5000
    )


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused_by_a_diff(
    refusal: Answer, tmp_path: Path, odd: float
) -> None:
    write(tmp_path / "a.proton", values=(odd, 5.0))
    write(tmp_path / "b.proton", values=(6.0, 5.0))

    line = refusal("diff", "a.proton", "b.proton")

    assert "a.proton" in line
    assert str(odd) in line


def test_negative_values_add_up(answer: Answer, tmp_path: Path) -> None:
    write(tmp_path / "a.proton", values=(-100, 40))
    write(tmp_path / "b.proton", values=(-50, 40))

    document = json.loads(answer("diff", "a.proton", "b.proton", "--json"))

    half = len(NAMES) // 2
    assert document["rows"][0]["inclusive"]["base"] == -60 * half
    assert document["rows"][0]["inclusive"]["change"] == 50 * half
    assert sum(row["own"]["change"] for row in document["rows"]) == 50 * half
    assert answer("diff", "a.proton", "b.proton")
    found = answer(*query("a.proton", 'SELECT min("time (ns) (inc)") FROM nodes', "--csv"))
    assert found.splitlines()[1] == str(-60 * half)


def test_metrics_that_are_missing_are_named(refusal: Answer, tmp_path: Path) -> None:
    write(tmp_path / "a.proton")
    write(tmp_path / "b.proton", metric="energy (J)")
    write_profile(ProfileBuilder().build(), tmp_path / "empty.proton")

    assert "energy" in refusal("diff", "a.proton", "b.proton", "-m", "energy")
    assert "recorded are count, time" in refusal("diff", "a.proton", "a.proton", "-m", "nothing")
    assert "empty" in refusal("diff", "a.proton", "empty.proton")
    assert "nothing" in refusal(*query("a.proton", "SELECT nothing FROM nodes"))


def test_devices_that_do_not_compare_are_refused_and_queried_side_by_side(
    answer: Answer, refusal: Answer, tmp_path: Path
) -> None:
    write(tmp_path / "a.proton")
    write(tmp_path / "b.proton", device=Device("HIP", 0, "gfx942", 304))

    line = refusal("diff", "a.proton", "b.proton")

    assert "'a.proton' ran on CUDA and 'b.proton' on HIP" in line
    assert "--ignore-devices" in line
    text = answer("diff", "a.proton", "b.proton", "--ignore-devices")
    assert text.startswith("no change of time (ns)\n")
    kinds = answer(*query("a.proton", "b.proton", "SELECT run, kind FROM devices", "--csv"))
    assert kinds.splitlines() == ["run,kind", "a,CUDA", "b,HIP"]


def test_counts_beyond_any_integer_are_compared_without_a_warning(tmp_path: Path) -> None:
    metrics = {"count": 10**30, "device_id": "0", "device_type": "CUDA", "time (ns)": 1000}
    leaf = {"children": [], "frame": {"name": "k", "type": "function"}, "metrics": metrics}
    root = {"children": [leaf], "frame": {"name": "ROOT", "type": "function"}, "metrics": {}}
    for name, other in (("a.hatchet", "k"), ("b.hatchet", "other")):
        leaf["frame"] = {"name": other, "type": "function"}
        (tmp_path / name).write_text(json.dumps([root]))

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "diff", "a.hatchet", "b.hatchet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
