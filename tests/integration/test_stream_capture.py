"""The API while a stream of the doubles is captured, in every mode and from two threads.

The double of libcuda ends a capture where the driver does, and counts those that it ended.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

MODES = ("global", "thread_local", "relaxed")
PROGRAM = Path(__file__).with_name("capture_matrix_program.py")
AT = "replay/<captured_at>"
BEFORE = {"before/kernel": 1}
FIRST, SECOND = {f"{AT}/first/kernel": 1}, {f"{AT}/second/kernel": 1}
UNSEEN = {f"{AT}/kernel": 1}  # captured while no session was active
EXPECTED = {
    **dict.fromkeys(
        ("scopes", "pause", "pause_flushing", "second", "data", "decorated", "sampled pause"),
        BEFORE | FIRST | SECOND,
    ),
    "deactivate": BEFORE | FIRST | UNSEEN,
    "activate": BEFORE | UNSEEN | SECOND,
    "start": UNSEEN | SECOND,
    "anew": UNSEEN | SECOND,
    "phases": FIRST | SECOND,
    **dict.fromkeys(("finalize", "interrupted", "sampled finalize"), BEFORE),
}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("mode", "thread", "data"),
    [*itertools.product(MODES, ("capturing", "other"), ("tree", "trace"))],
)
def test_no_entry_ends_a_capture(
    cupti_doubles: Doubles, tmp_path: Path, mode: str, thread: str, data: str
) -> None:
    environment = cupti_doubles.environment(PROTON_BENCH_NATIVE="1")
    command = [sys.executable, str(PROGRAM), mode, thread, data, str(tmp_path)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {entry: EXPECTED[entry] for entry in found}
    assert found.keys() == {e for e in EXPECTED if data == "tree" or "sampled" not in e}
