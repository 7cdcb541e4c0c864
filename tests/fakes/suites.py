"""Profiles of test runs whose benchmarks were calibrated to given rounds and calls."""

from __future__ import annotations

from fakes.benchmarks import record_of

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.rounds.cuda import FLUSH
from proton_bench.rounds.in_profile import profile_of

GPU = Device("CUDA", 0, "90", 132)
TESTS = ("test_x.py::test_a", "test_x.py::test_b")


def suite(
    rounds: int,
    calls: int,
    *,
    tests: tuple[str, ...] = TESTS,
    launch_ns: dict[str, int] | None = None,
    launches: int = 2,
) -> Profile:
    """Return a run of tests with one setup, calibrated to given rounds and calls."""
    builder = ProfileBuilder()
    for metric in ("wall (ns)", "calls"):
        builder.declare(metric, Aggregation.EXCLUSIVE)
    times = dict.fromkeys(tests, 100) | (launch_ns or {})

    def work(parent: int, name: str, *, launches: int, each: int) -> int:
        metrics = {"time (ns)": each * launches, "count": launches}
        builder.add(parent, name, FrameKind.KERNEL, metrics=metrics, device=GPU)
        return 10 * each * launches

    session = builder.add(0, "session", FrameKind.TEST)
    file = builder.add(session, "test_x.py", FrameKind.TEST)
    walls = 0
    for test, each in times.items():
        node = builder.add(file, test.partition("::")[2], FrameKind.TEST)
        setup = builder.add(node, "setup", FrameKind.TEST)
        set_up = work(setup, "fill", launches=1, each=7000)
        call = builder.add(node, "call", FrameKind.TEST)
        own = 3000
        for name, done, kernel in (
            ("warm-up", 2 * calls + 1, "mm"),
            (FLUSH, rounds + 1, "memset"),
            ("rounds", rounds * calls, "mm"),
        ):
            scope = builder.add(call, name, FrameKind.SCOPE)
            of_flush = name == FLUSH
            wall = work(
                scope,
                kernel,
                launches=done if of_flush else launches * done,
                each=50 if of_flush else each,
            )
            builder.set(scope, "wall (ns)", wall)
            if name == "warm-up":
                builder.set(scope, "calls", done)
            own += wall
        for row, wall in ((setup, set_up), (call, own), (node, own + set_up)):
            builder.set(row, "wall (ns)", wall)
        walls += own + set_up
    builder.set(file, "wall (ns)", walls)
    builder.set(session, "wall (ns)", walls)
    records = [
        record_of(test, calls=calls, cpu_ns=(1e4,) * rounds, gpu_ns=(1e4,) * rounds)
        for test in tests
    ]
    return Profile.merge([builder.build(), profile_of(records)])
