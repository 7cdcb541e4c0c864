"""The native runtime through its bindings, on the double of libcuda."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAM = Path(__file__).parents[2] / "fakes" / "native_launches.py"


def run(doubles: Doubles, name: str) -> Any:
    """Run one function of the program in a process that has the doubles."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name],
        env=doubles.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def paths(tree: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each node by its path."""
    found: dict[str, dict[str, Any]] = {}

    def walk(node: dict[str, Any], path: tuple[str, ...]) -> None:
        here = (*path, node["frame"]["name"])
        found["/".join(here[1:])] = node["metrics"]
        for child in node["children"]:
            walk(child, here)

    walk(tree[0], ())
    return found


def test_scopes_stand_below_the_kernel_where_it_was_launched(cupti_doubles: Doubles) -> None:
    found = paths(run(cupti_doubles, "tree"))

    inner = found["step/matmul/outer/inner"]
    assert inner["cycles"] == (100 + 200 + 300) * 4 * 2
    assert found["step/matmul/outer"]["cycles"] == (130 + 230 + 330) * 4 * 2


def test_an_open_launch_can_be_read_and_is_reduced_all_the_same(cupti_doubles: Doubles) -> None:
    found = run(cupti_doubles, "open_records")

    assert found["bytes"] == 4 * 256
    assert found["programs"] == [0, 1, 2, 3]
    assert found["others"] == [None, None]


def test_facts_include_launches_and_memory(cupti_doubles: Doubles) -> None:
    found = run(cupti_doubles, "facts")

    assert found["during"]["launches"] == 1
    assert found["during"]["device_bytes"] > 0
    assert found["during"]["pinned_bytes"] > 0
    assert found["during"]["clock_mhz"] == pytest.approx(2000)
    (timer,) = found["during"]["device_timers"]
    assert timer["readings"] == 1
    assert timer["uncertainty_ns"] >= 0
    assert timer["device"] == 0
    assert found["after"]["device_bytes"] == 0
    assert found["after"]["failed_launches"] == found["after"]["abandoned_launches"] == 0


def test_what_is_refused_is_said_with_numbers(cupti_doubles: Doubles) -> None:
    found = run(cupti_doubles, "errors")

    assert found["limit"].startswith("UsageError: a launch needs 4096 bytes")
    assert "byte_limit=1024" in found["limit"]
    assert "reaches only 512" in found["reach"]
    assert "'matmul' cannot be read" in found["layout"]
    assert found["arguments"].startswith("UsageError: the profile allocator takes")
    assert "runs already" in found["again"]
    assert "does not run" in found["stopped"]


def test_private_kernels_are_taken_and_not_seen(cupti_doubles: Doubles) -> None:
    found = run(cupti_doubles, "private")

    totals, scopes = found["taken"]
    assert totals["programs"] == 4
    assert [(each["count"], each["cycles"], each["min_cycles"]) for each in scopes] == [
        (8, 8 * 47, 47),
        (8, 8 * 17, 17),
    ]
    assert not any("matmul" in path for path in paths(found["tree"]))


def test_functions_may_be_called_after_their_runtime_is_gone(cupti_doubles: Doubles) -> None:
    found = run(cupti_doubles, "after_the_runtime")

    assert found["same"] is True
    assert "does not run" in found["message"]
