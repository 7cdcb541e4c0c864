"""Measures what the units of the GPU reach at best, for the ceilings of ``proton why``.

The kernels run in a process of their own, `calibration_program`. No clock is changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proton_bench.diagnosis import calibration_program
from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.errors import OutputError
from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS
from proton_bench.recording.counters.ceilings import (
    ceiling_file,
    load_ceilings,
    store_ceilings,
)
from proton_bench.recording.gpu.nvidia import gpu_facts


def run_child(
    command: Sequence[str], *, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Return how a program ended and what it printed; code 1 and a text if it took too long.

    It is not recorded: it has no session and is not a child of a recorded program.

    Args:
        command: The program and its arguments.
        timeout_s: After so long it is killed.
    """
    environ = {key: value for key, value in os.environ.items() if key != "PROTON_BENCH_AUTOSTART"}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            check=False,
            encoding="utf-8",
            env=environ,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        text = f"did not end within {timeout_s:.0f} s"
        return subprocess.CompletedProcess(command, 1, "", text)


_TIMEOUT_S = 180.0
_ADVICE = "`proton doctor --calibrate` measures them in about ten seconds"

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def calibrate(run: Run | None = None) -> Section:
    """Measure the ceilings of the first GPU, store them, and return what was found.

    Args:
        run: Runs a command; ``subprocess`` by default.
    """
    command = [sys.executable, "-P", "-m", calibration_program.__name__]
    done = run(command) if run is not None else run_child(command, timeout_s=_TIMEOUT_S)
    mark = calibration_program.MARK
    answers = [line for line in done.stdout.splitlines() if line.startswith(mark)]
    if not answers:
        last = done.stderr.strip().splitlines()[-1:] or [f"it ended with code {done.returncode}"]
        return _section(Status.PROBLEM, "nothing was measured", last[0])
    answer = json.loads(answers[-1].removeprefix(mark))
    if "error" in answer:
        return _section(Status.ABSENT, "nothing was measured", answer["error"])
    file = ceiling_file(answer["gpu"], answer["driver"])
    try:
        kept = store_ceilings(file, answer["ceilings"])
    except (OSError, OutputError) as error:
        return _section(Status.PROBLEM, "the ceilings were not stored", str(error))
    notes = [f"{unit}: {why}" for unit, why in answer["missing"].items()]
    value = f"{_text(kept)} of the peaks of {answer['gpu']}, driver {answer['driver']}"
    return _section(Status.OK if kept else Status.PROBLEM, value, "; ".join(notes))


def ceiling_section(gpus: Sequence[Mapping[str, Any]] | None = None) -> Section:
    """Return which ceilings a run here would have, a finding per kind of GPU.

    Args:
        gpus: Facts of GPUs; None asks the driver.
    """
    found = {}
    for gpu in gpu_facts() if gpus is None else gpus:
        name, driver = gpu.get("name"), gpu.get("driver")
        if not name or not driver:
            continue
        measured = load_ceilings(ceiling_file(name, driver))
        title = f"{name}, driver {driver}"
        value, advice = _text({**USUAL_CEILINGS, **measured}), ""
        if measured:
            value += f" of the peaks; measured: {', '.join(measured)}"
        else:
            value, advice = f"{value} of the peaks, the usual ones", _ADVICE
        found[name] = Finding(title, Status.OK, value, advice)
    return Section("calibration", tuple(found.values()))


def _section(status: Status, value: str, advice: str) -> Section:
    return Section("calibration", (Finding("ceilings", status, value, advice),))


def _text(fractions: Mapping[str, float]) -> str:
    return ", ".join(f"{unit} {100.0 * value:.0f} %" for unit, value in fractions.items()) or "none"
