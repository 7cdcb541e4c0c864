"""``proton-viewer`` prints what Triton's own viewer prints, option by option, on its files."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import H100, node

pytest.importorskip("triton")
pytest.importorskip("hatchet")

from proton_bench.cli.viewer import main

DATA = Path(__file__).parents[1] / "data" / "upstream"
EAGER, FRAMES = DATA / "eager-tree.hatchet", DATA / "eager-python.hatchet"
HOOK, SAMPLES = DATA / "tinymeta-hook.hatchet", DATA / "matmul-pcsampling.hatchet"

# In a process of its own, where nothing answers for `triton.profiler` but Triton.
SHOW = """
import contextlib, io, json, sys, warnings
warnings.simplefilter("ignore")
from triton.profiler import viewer
found = {}
for name, words in json.loads(sys.argv[1]).items():
    sys.argv = ["proton-viewer", *words]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        viewer.main()
    found[name] = text.getvalue()
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Case:
    """One call; ``columns`` numbers stand before each name, ours rounded to ``tolerance``."""

    words: tuple[str, ...]
    file: Path
    columns: int = 1
    tolerance: float = 6e-4


CASES = {
    "time": Case(("-m", "time/ms"), EAGER),
    "several metrics": Case(("-m", "time/us,count"), EAGER, 2),
    "units": Case(("-m", "time/s,time/ms,time/us,time/ns"), EAGER, 4),
    "case and unit do not matter": Case(("-m", "TIME,Count"), EAGER, 2),
    "averages": Case(("-m", "avg_time/s,avg_time/ms,avg_time/us,avg_time/ns"), EAGER, 4),
    "percentages": Case(("-m", "time/%,count/%"), EAGER, 2, tolerance=0.06),
    "include": Case(("-m", "time/us", "-i", ".*fmha.*"), EAGER),
    "exclude": Case(("-m", "time/us", "-e", ".*ward"), EAGER),
    "threshold": Case(("-m", "time/ms", "-t", "0.2"), EAGER),
    "depth": Case(("-m", "time/ms", "-d", "2"), EAGER),
    "full": Case(("-m", "time/us", "-f", "full"), FRAMES),
    "flops": Case(("-m", "flop32/s,gflop32/s,tflop32/s,flops32"), HOOK, 4),
    "bytes": Case(("-m", "byte/s,gbyte/s,tbyte/s,bytes"), HOOK, 4),
    "util": Case(("-m", "util,time/ms"), HOOK, 2),
    "samples": Case(("-m", "num_samples,num_samples/%,stalled_wait"), SAMPLES, 3),
    "difference": Case(("-m", "time/us,count", "-diff", str(EAGER)), Path("changed.hatchet"), 2),
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file in which half of the kernels took longer."""
    path = tmp_path_factory.mktemp("changed") / "changed.hatchet"
    tree = json.loads(EAGER.read_text())
    waiting = [tree[0]]
    while waiting:
        node = waiting.pop()
        if len(waiting) % 2 and node["metrics"].get("time (ns)"):
            node["metrics"]["time (ns)"] += 7777
        waiting += node["children"]
    path.write_text(json.dumps(tree))
    return path


@pytest.fixture(scope="module")
def words(changed: Path) -> dict[str, list[str]]:
    found = {
        name: [*case.words, str(case.file if case.file.is_absolute() else changed)]
        for name, case in CASES.items()
    }
    lost = changed.with_name("lost.hatchet")
    lost.write_text(json.dumps(two_kernels("kept", "fresh")))
    before = changed.with_name("before.hatchet")
    before.write_text(json.dumps(two_kernels("kept", "gone")))
    found["filtered count"] = ["-m", "count", "-i", ".*fmha.*", str(EAGER)]
    found["lost kernel"] = ["-m", "time/us", "-diff", str(before), str(lost)]
    return found


def two_kernels(*names: str) -> list[dict[str, Any]]:
    """Return a scope with two kernels of 2048 and 1024 ns."""
    cost = {"count": 1, "device_id": "0", "device_type": "CUDA"}
    kernels = [
        node(name, {**cost, "time (ns)": time})
        for name, time in zip(names, (2048, 1024), strict=True)
    ]
    return [
        node("ROOT", {"count": 0, "time (ns)": 0}, node("scope", {}, *kernels)),
        {"CUDA": {"0": H100}},
    ]


@pytest.fixture(scope="module")
def theirs(words: dict[str, list[str]]) -> dict[str, str]:
    command = [sys.executable, "-c", SHOW, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def printed(words: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert main(words) == 0
    return text.getvalue()


def lines(text: str, columns: int) -> list[tuple[str, tuple[float, ...]]]:
    """Return name and numbers of each row; rows without a number are NaN there and '-' here."""
    number = r"-?(?:[\d.]+(?:e[-+]\d+)?|nan)|-"
    row = re.compile(rf"\W*?((?:(?:{number})\s+){{{columns}}})[^\w<]*(\S+).*")
    found = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", text).split("\n\n(inc): ")[0].splitlines():
        match = row.fullmatch(line)
        if match and not line.startswith(("CUDA", "own cost")):
            values = ["0" if word in {"nan", "-"} else word for word in match[1].split()]
            found.append((match[2], tuple(map(float, values))))
    return sorted(found)


@pytest.mark.parametrize("name", CASES)
def test_options_show_what_upstream_shows(
    name: str, words: dict[str, list[str]], theirs: dict[str, str]
) -> None:
    expected = lines(theirs[name], CASES[name].columns)

    found = lines(printed(words[name]), CASES[name].columns)

    assert expected
    assert [row for row, _ in found] == [row for row, _ in expected]
    for (_, ours), (row, upstreams) in zip(found, expected, strict=True):
        assert ours == pytest.approx(upstreams, rel=2e-3, abs=CASES[name].tolerance), row


def values(text: str) -> dict[str, float]:
    return {name: numbers[0] for name, numbers in lines(text, 1)}


def test_filters_leave_counts_alone_and_upstream_sums_what_is_left(
    words: dict[str, list[str]], theirs: dict[str, str]
) -> None:
    ours = values(printed(words["filtered count"]))

    assert (ours["ROOT"], ours["backward"], ours["forward"]) == (1404, 986, 412)
    assert values(theirs["filtered count"])["ROOT"] == 48


def test_a_kernel_that_is_gone_is_a_difference_and_upstream_has_nan(
    words: dict[str, list[str]], theirs: dict[str, str]
) -> None:
    ours = values(printed(words["lost kernel"]))

    assert ours == {"ROOT": 0, "scope": 0, "kept": 0, "fresh": 1.024, "gone": -1.024}
    assert "nan gone" in theirs["lost kernel"]


def test_sorted_rows_are_those_of_upstream(tmp_path: Path) -> None:
    text = printed(["-m", "time/ms", "--print-sorted", str(EAGER)])

    head, *rows = text.partition("Sorted kernels by metric ")[2].splitlines()
    numbers = [float(row.split()[0]) for row in rows]
    assert head == "time/ms (inc)"
    assert numbers == sorted(numbers, reverse=True)
    assert [row.split()[1] for row in rows[:2]] == ["backward", "forward"]
    assert not any(row.endswith(" ROOT") for row in rows)
