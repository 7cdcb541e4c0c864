"""The processes of ``endings``: one that has loaded the profiler, and its forks, which end.

Each line of stdin is a request as JSON. A fork of this process becomes what ``proton run``
becomes, so that an ending costs no start of an interpreter. It runs ``TARGET`` below; its number is
printed at once, and its wait status when it is over.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.runner import main
from proton_bench.recording.launcher.target import TargetKind

# The log is an array of int64 in shared memory: scopes so far, the state, then when each
# SCOPES_PER_TIME-th scope ended. Its file is sparse, so that it may have room for many.
SCOPES_PER_TIME = 4
LOG_WORDS = 1 << 23
RUNNING, OVER = 1, 2

TARGET = """
import mmap, os, sys, threading, time
import proton_bench as proton

seconds, pause, way = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
log = memoryview(mmap.mmap(os.open("log", os.O_RDWR), 0)).cast("q")

def record(until):
    n = 0
    while time.monotonic() < until:
        with proton.scope("a"), proton.scope("b", {"n": 1}):
            pass
        n += 1
        if n % 4 == 0 and n // 4 + 2 < len(log):
            log[n // 4 + 2] = time.monotonic_ns()
        log[0] = n
        if pause:
            time.sleep(pause)

def beside(until):
    while time.monotonic() < until:
        with proton.scope("beside", {"m": 1}):
            time.sleep(0.0002)

def forks(until):
    while time.monotonic() < until:
        child = os.fork()
        if not child:
            if n_children % 2:
                number = proton.start(f"child{os.getpid()}")
                with proton.scope("in child", {"c": 1}):
                    pass
            os._exit(0)
        yield child

until = time.monotonic() + seconds
log[1] = 1
if way == "forks":
    threads = [threading.Thread(target=beside, args=[until]) for _ in range(2)]
    threads.append(threading.Thread(target=record, args=[until]))
    for thread in threads:
        thread.start()
    n_children, failed, longest = 0, 0, 0
    begun = time.monotonic()
    for child in forks(until):
        longest = max(longest, time.monotonic() - begun)
        failed += os.waitpid(child, 0)[1] != 0
        n_children += 1
        begun = time.monotonic()
    for thread in threads:
        thread.join()
    print(f"failed={failed} longest_ms={longest * 1e3:.1f}", flush=True)
elif way == "exit in a thread":
    thread = threading.Thread(target=sys.exit, args=[5])
    thread.start()
    record(until)
    thread.join()
else:
    record(until)
log[1] = 2
if way == "_exit":
    os._exit(7)
if way == "_exit in a thread":
    threading.Thread(target=os._exit, args=[7]).start()
    threading.Event().wait()
if way == "exec":
    os.execv("/bin/sh", ["sh", "-c", "exit 7"])
if way == "error":
    raise ValueError("of the program")
if way == "exit":
    sys.exit(7)
if way == "abort":
    os.abort()
"""


def _serve() -> list[str]:
    """Fork for each request; return in the fork with the words of the runner."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return _become(request)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
    sys.exit()


def _become(request: dict[str, str]) -> list[str]:
    os.chdir(request["folder"])
    for number, name, flags in (
        (0, "/dev/null", os.O_RDONLY),
        (1, "out", os.O_WRONLY | os.O_CREAT),
        (2, "err", os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(name, flags, 0o600), number)
    os.environ["PROTON_BENCH_PARTIAL_INTERVAL_S"] = request["interval"]
    trace = ("proton", "chrome_trace", "perfetto")
    options = RunOptions(
        kind=TargetKind.SCRIPT,
        target="x.py",
        name=os.path.join(request["folder"], "x"),
        folder=request["folder"],
        formats=trace if request["data"] == "trace" else ("proton", "hatchet"),
        backend="cpu",
        interpret=False,
        children=False,
        compat=False,
    )
    options = replace(options, data=request["data"])
    return [options.to_json(), request["seconds"], request["pause"], request["way"]]


if __name__ == "__main__":
    main(_serve())
