"""The first use of the package beside forks, and in a subinterpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("proton_bench._native")

# Threads look up names of the package for the first time while the main one forks.
FORKING = """
import os, threading
import proton_bench
names = {names!r}
threads = [threading.Thread(target=getattr, args=(proton_bench, name)) for name in names]
for thread in threads:
    thread.start()
children = []
for _ in range(6):
    child = os.fork()
    if not child:
        for name in names:
            getattr(proton_bench, name)
        with proton_bench.scope("child"):
            os._exit(5)
    children.append(child)
for thread in threads:
    thread.join()
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
import sys
sys.path[:] = {path!r}
import proton_bench
try:
    proton_bench.scope("a")
except ImportError as error:
    print(error, flush=True)
''')
import proton_bench
with proton_bench.scope("b"):
    print("the main interpreter goes on")
"""


def run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=90
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("names", [["scope"], ["state", "scope", "start"], ["Profile", "profile"]])
def test_a_child_that_is_forked_amid_the_first_use_goes_on(names: list[str]) -> None:
    assert run(FORKING.format(names=names)) == ["5 5 5 5 5 5"]


def test_a_subinterpreter_gets_one_line_and_waits_for_nothing() -> None:
    first, second = run(SUBINTERPRETER.format(path=sys.path))

    assert "main interpreter" in first
    assert second == "the main interpreter goes on"
