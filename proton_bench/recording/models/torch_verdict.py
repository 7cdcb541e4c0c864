"""Tests in a child process, once per libtorch, whether torch's operators can be observed natively.

The answer is stored in the user's cache folder, by the build id of ``libtorch_cpu.so``. It can be
deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import proton_bench
from proton_bench import _native
from proton_bench.recording.models import torch_probe
from proton_bench.support.files import write_file

VERSION = 5  # of the test: a new version invalidates stored results
TIMEOUT_S = 60.0
# These depend on the library; others, such as a kill for lack of memory, do not.
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for a libtorch.

    Attributes:
        reason: Why its operators cannot be observed natively; "" if they can.
        reads_scope: The kind of an operator can be read from it, which is cheaper.
        node_offset: Where an operator of a backward pass has the number of its node, bytes; 0 where
            that is unknown.
        fwd_thread_offset: Where it has the number of the thread that made the node, as above.
        inputs: Where it has its arguments, as ``read_torch_inputs`` takes that; None where that is
            unknown.
        is_final: Another probe would give the same result.
    """

    reason: str
    reads_scope: bool = False
    node_offset: int = 0
    fwd_thread_offset: int = 0
    inputs: Mapping[str, Any] | None = None
    is_final: bool = True


def judge_torch(torch: ModuleType) -> Verdict:
    """Return the verdict on the loaded libtorch, probing it if necessary.

    Args:
        torch: The imported module.
    """
    build_id = _native.loaded_build_id(torch_probe.LIBRARY)
    file = verdict_file(build_id) if build_id else None
    known = _read(file) if file else None
    if known is not None:
        return known
    verdict = _probe(torch, build_id)
    if file is not None and verdict.is_final:
        _write(file, verdict)
    return verdict


def verdict_file(build_id: str) -> Path:
    """Return the file in the user's cache folder that holds the verdict."""
    import platformdirs

    folder = platformdirs.user_cache_path("proton_bench")
    return folder / "torch_observer" / f"{build_id}.{_native.version}.json"


def _read(file: Path) -> Verdict | None:
    try:
        fields = json.loads(file.read_bytes())
        if fields["version"] != VERSION:
            return None
        return _verdict(fields)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # missing, or not ours: probe again


def _verdict(fields: Mapping[str, object]) -> Verdict:
    """Return the verdict of a file or of a probe.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has another type.
    """
    reason, reads_scope = fields["reason"], fields["reads_scope"]
    node_offset, thread_offset = fields["node_offset"], fields["fwd_thread_offset"]
    if not isinstance(reason, str) or not isinstance(reads_scope, bool):
        raise TypeError("another form")
    if not isinstance(node_offset, int) or not isinstance(thread_offset, int):
        raise TypeError("another form")
    inputs = fields["inputs"]
    if inputs is not None and not isinstance(inputs, Mapping):
        raise TypeError("another form")
    return Verdict(reason, reads_scope, node_offset, thread_offset, inputs)


def _write(file: Path, verdict: Verdict) -> None:
    """Store the verdict; if that fails, each run probes again."""
    fields = asdict(verdict) | {"version": VERSION}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, json.dumps(fields))


def _probe(torch: ModuleType, build_id: str) -> Verdict:
    folders = [_folder(torch), _folder(proton_bench)]
    try:
        # -P: do not import from our own folder.
        result = subprocess.run(
            [sys.executable, "-P", torch_probe.__file__, *folders],
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"a test of it took longer than {TIMEOUT_S:.0f} s", is_final=False)
    except (OSError, ValueError) as error:
        return Verdict(f"a test of it could not be started: {error}", is_final=False)
    if result.returncode < 0 and -result.returncode in _CRASHES:
        return Verdict(f"a test of it ended with {signal.Signals(-result.returncode).name}")
    return _findings(result.stdout, build_id) or Verdict(
        f"a test of it ended with code {result.returncode}", is_final=False
    )


def _folder(package: ModuleType) -> str:
    return str(Path(str(package.__file__)).parents[1])


def _findings(output: bytes, build_id: str) -> Verdict | None:
    try:
        findings = json.loads(output.splitlines()[-1])
        if findings["build_id"] != build_id:
            return Verdict("a test of it loaded another torch", is_final=False)
        return _verdict(findings)
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the child's environment: ours, without variables that would profile the child."""
    return {name: value for name, value in ours.items() if name != "PROTON_BENCH_AUTOSTART"}
