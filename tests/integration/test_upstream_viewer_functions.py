"""Our viewer functions take and return what Triton's own viewer's do, on files of upstream."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")
pytest.importorskip("hatchet")

from proton_bench import viewer

DATA = sorted((Path(__file__).parents[1] / "data" / "upstream").glob("*.hatchet"))
# Metrics that a file must record to be derived, as upstream names them.
WANTED = {
    "time (ns)": ("time/s", "time/ms", "time/us", "time/ns", "time/%", "avg_time/us", "TIME"),
    "flops32": ("flop32/s", "gflop32/s", "tflop32/s", "flops32/%"),
    "bytes": ("byte/s", "gbyte/s", "tbyte/s", "bytes/%", "util"),
    "count": ("count", "count/%"),
    "cycles": ("cycles", "cycles/%"),
    "normalized_cycles": ("normalized_cycles",),
    "num_samples": ("num_samples", "num_samples/%"),
}

# In a process of its own, where nothing answers for `triton.profiler` but Triton. The second file
# is the first again: a difference of nothing.
SURVEY = """
import json, sys, warnings
warnings.simplefilter("ignore")
SOURCE
from triton.profiler import viewer
wanted, *paths = sys.argv[1:]
print(json.dumps({path: survey(viewer, path, json.loads(wanted)) for path in paths}))
"""
SOURCE = """
def lines(graph_frame, columns):
    frame = graph_frame.dataframe
    found = []
    for row in frame[["name", *columns]].itertuples(index=False, name=None):
        found.append([None if v != v else v for v in row])
    return sorted(found, key=str)

def survey(viewer, path, wanted):
    with open(path) as file:
        raw = viewer.get_raw_metrics(json.load(file))
    with open(path) as file:
        database = json.load(file)
    read = viewer.read(path)
    available = [m for known, names in wanted.items() if known in read[1] + read[2] for m in names]
    gf, inclusive, exclusive, devices = read
    columns = viewer.derive_metrics(gf, available, inclusive, exclusive, devices)
    first = available[0]
    parsed, parsed_columns = viewer.parse([first], path)
    largest = float(parsed.dataframe[parsed_columns[0]].max())
    found = {
        "raw": [lines(raw[0], []), sorted(raw[1]), sorted(raw[2]), raw[3]],
        "columns": columns,
        "values": lines(gf, columns),
        "threshold": lines(
            viewer.parse([first], path, None, None, largest / 4)[0], parsed_columns
        ),
        "include": lines(viewer.parse([first], path, ".*e.*", None, None)[0], []),
        "exclude": lines(viewer.parse([first], path, None, ".*ward.*", None)[0], []),
        "difference": lines(
            viewer.apply_diff_profile(parsed, parsed_columns, path, [first], None, None, None),
            parsed_columns,
        ),
    }
    for form in ("file_function_line", "function_line", "file_function"):
        whole = viewer.read(path)[0]
        names = whole.dataframe["name"].tolist()
        formatted = viewer.format_frames(whole, form).dataframe["name"].tolist()
        # Upstream shortens other frames than Python's too: kernel becomes kernel@kernel.
        found[form] = sorted(n for old, n in zip(names, formatted) if ":" in old and "@" in old)
    return found
"""


def ours(path: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"json": json}
    exec(compile(SOURCE, "survey", "exec"), names)
    with warnings.catch_warnings(action="ignore"):
        found: dict[str, Any] = names["survey"](viewer, str(path), WANTED)
    return found


@pytest.fixture(scope="module")
def theirs() -> dict[str, dict[str, Any]]:
    program = SURVEY.replace("SOURCE", SOURCE)
    command = [sys.executable, "-c", program, json.dumps(WANTED), *map(str, DATA)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, float) or isinstance(other, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), (one, other)
        for left, right in zip(one, other, strict=True):
            assert_equal(left, right)
    else:
        assert one == other


def says_what_is_inclusive(path: Path) -> bool:
    return bool(json.loads(path.read_text())[0]["metrics"])


@pytest.mark.parametrize(
    "path", list(filter(says_what_is_inclusive, DATA)), ids=lambda path: path.stem
)
def test_functions_return_what_upstreams_do(path: Path, theirs: dict[str, dict[str, Any]]) -> None:
    expected = theirs[str(path)]

    found = json.loads(json.dumps(ours(path)))

    for part, wanted in expected.items():
        try:
            assert_equal(found[part], wanted)
        except AssertionError as error:
            raise AssertionError(f"{part}: {error}") from error


@pytest.mark.parametrize(
    "path", [path for path in DATA if not says_what_is_inclusive(path)], ids=lambda path: path.stem
)
def test_cycles_that_a_file_calls_nothing_are_exclusive_here_and_there(
    path: Path, theirs: dict[str, dict[str, Any]]
) -> None:
    rows, inclusive, exclusive, devices = theirs[str(path)]["raw"]

    found = ours(path)["raw"]

    assert_equal(found[0], rows)
    assert found[3] == devices
    assert inclusive == []
    assert {"cycles", "normalized_cycles"} <= set(found[2]) & set(exclusive)
    assert sorted(found[1] + found[2]) == exclusive
