"""The section of ``proton doctor`` on a backend of AMD GPUs: its library, HIP, and a test.

Both are opened in a child process that ends, never in this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proton_bench.errors import BackendUnavailableError
from proton_bench.plugin import Finding, Status
from proton_bench.support.child import run_child
from proton_bench_plugins.rocm import selftest
from proton_bench_plugins.rocm.library import HIP, RocmLibrary

__all__ = ["examine"]


Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def examine(
    backend: str, library: RocmLibrary, obstacle: str | None, *, run: Run | None = None
) -> list[Finding]:
    """Return the locations of the libraries, and whether the backend starts.

    Args:
        backend: Its name.
        library: The profiler's library that it needs.
        obstacle: Why the test is unnecessary, or None.
        run: Runs a command; ``subprocess`` by default.
    """
    try:
        files = [_file_finding(each) for each in (HIP, library)]
    except BackendUnavailableError as error:
        return [Finding(library.names[-1], Status.PROBLEM, str(error), provides=(backend,))]
    return [*files, _trial_finding(backend, obstacle, run or run_child)]


def _file_finding(library: RocmLibrary) -> Finding:
    name = library.names[-1].removesuffix(".so")
    for path, origin, only_if_loaded in library.find_candidates():
        if not only_if_loaded and os.path.sep in path:
            return Finding(
                name, Status.OK, path, f"{origin}: used, unless the program has loaded one"
            )
    advice = f"only the system's library search is left; name one with {library.variables[0]}"
    return Finding(name, Status.ABSENT, "no file found", advice)


def _trial_finding(backend: str, obstacle: str | None, run: Run) -> Finding:
    name = "starting it"
    if obstacle is not None:
        return Finding(name, Status.ABSENT, "not tried", obstacle, provides=(backend,))
    done = run([sys.executable, "-P", "-m", selftest.__name__, backend])
    answers = [line for line in done.stdout.splitlines() if line.startswith(selftest.MARK)]
    if not answers:
        last = done.stderr.strip().splitlines()[-1:]
        why = "; ".join([f"ended with code {done.returncode}", *last])
        return Finding(name, Status.PROBLEM, f"the test {why}", provides=(backend,))
    return _judge(backend, name, json.loads(answers[-1].removeprefix(selftest.MARK)))


def _judge(backend: str, name: str, result: Mapping[str, Any]) -> Finding:
    if "error" in result:
        return Finding(name, Status.PROBLEM, result["error"], provides=(backend,))
    facts = result["facts"]
    value = f"works ({os.path.basename(facts['library'])} {facts['version']}".rstrip()
    value += f", HIP {facts['driver']})" if facts["driver"] else ")"
    return Finding(name, Status.OK, value, provides=(backend,))
