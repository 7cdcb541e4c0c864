"""What layers and operators in call paths cost: python -m benchmarks.micro.model_layers.

A model of 200 small modules runs on the CPU: a forward pass of modules that compute nothing, which
shows the cost of a call, and a training step. Arms are fresh processes in turn: no session, a
session with scopes alone, torch's global hooks that open and close a scope, layers, layers with
operators, and with their shapes. Launches inside of a module are timed in one process, by sessions
in turn. Times are those of the thread on a processor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import difference, median, print_machine, print_row, ratio, rounds

ROUNDS = 7
MODULES = 200
PASSES = 100
STEPS = 10
LAUNCHES = 20_000
LAUNCH_ROUNDS = 25
ARMS = ("none", "shadow", "hooks", "layers", "layers+ops", "layers+ops+shapes")
BAR = "1.02"


def spent_s(work: Callable[[], object], calls: int) -> float:
    """Return the mean cost of a call; the least of five tries."""
    tries = []
    for _ in range(5):
        begin = time.thread_time_ns()
        for _ in range(calls):
            work()
        tries.append((time.thread_time_ns() - begin) / calls)
    return min(tries) / 1e9


def hook_scopes(torch: Any) -> None:
    """Open a scope for each module, through torch's global hooks."""
    from proton_bench import _native as native

    calls = torch.nn.modules.module
    calls.register_module_forward_pre_hook(
        lambda module, _args: native.enter_scope(type(module).__name__) and None
    )
    calls.register_module_forward_hook(
        lambda _module, _args, _result: native.exit_scope() and None, always_call=True
    )


def measure(arm: str) -> dict[str, float]:
    """Return seconds of a pass and of a step in this process."""
    import torch

    from proton_bench import _native as native
    from proton_bench.recording.models.torch_context import torch_context

    torch.set_num_threads(1)
    context = arm if arm.startswith("layers") else "shadow"
    if arm != "none":
        core = native.Session(context, False)
        torch_context.hold(core.id, context)
        core.activate()
    if arm == "hooks":
        hook_scopes(torch)
    x = torch.ones(4)
    empty = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(MODULES)])
    small = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(MODULES)])
    optimizer = torch.optim.SGD(small.parameters(), lr=1e-3)

    def step() -> None:
        small(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for warm_up in (lambda: empty(x), step):
        for _ in range(10):
            warm_up()
    return {"pass": spent_s(lambda: empty(x), PASSES), "step": spent_s(step, STEPS)}


def launch_arm(module: Any, context: str, recording: str) -> Callable[[], float]:
    """Return an arm: seconds of a launch inside of a module."""
    from proton_bench import _native as native
    from proton_bench.recording.models.torch_context import torch_context

    def arm() -> float:
        core = native.Session(context, False)
        torch_context.hold(core.id, context)
        core.activate()
        collector = native.ReplayCollector(recording, True)
        collector.start()
        collector.launch(1)
        with native.scope("as deep"):
            module(collector)
        collector.stop()
        core.deactivate()
        torch_context.release(core.id)
        core.remove()
        return module.s

    return arm


def show_launches(recording: str) -> None:
    """Measure and print launches of sessions with layers, against those of scopes alone."""
    import torch

    class Launches(torch.nn.Module):
        """Launches as often as it can."""

        def forward(self, collector: Any) -> None:
            """Launch."""
            self.s = spent_s(lambda: collector.launch(LAUNCHES), 1) / LAUNCHES

    arms = {
        name: launch_arm(Launches(), name, recording) for name in ("shadow", "layers", "layers+ops")
    }
    costs = rounds(arms, LAUNCH_ROUNDS)
    print_row("launch, scopes", f"{median([value * 1e9 for value in costs['shadow']]):.1f} ns")
    for name in ("layers", "layers+ops"):
        print_row(f"launch, {name}", f"{ratio(costs[name], costs['shadow']):.3f}", BAR)


def arm_of(name: str, costs: dict[str, list[dict[str, float]]]) -> Callable[[], float]:
    """Return an arm that measures in a fresh process and keeps all it found."""

    def arm() -> float:
        command = [sys.executable, "-m", __spec__.name, name]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        costs[name].append(json.loads(output.splitlines()[-1]))
        return costs[name][-1]["pass"]

    return arm


def main() -> None:
    """Measure in turn and print what each arm adds."""
    from proton_bench import _native as native

    costs: dict[str, list[dict[str, float]]] = {name: [] for name in ARMS}
    print_machine()
    with TemporaryDirectory() as folder:
        recording = str(Path(folder) / "launches")
        launches = [{"event": "launch", "correlation_id": 1}] * (5 * LAUNCHES + 1)
        native.write_recording(recording, launches)
        show_launches(recording)
    rounds({name: arm_of(name, costs) for name in ARMS}, ROUNDS)
    values = {
        name: {key: [each[key] for each in found[1:]] for key in found[0]}
        for name, found in costs.items()
    }
    for key, calls in (("pass", MODULES), ("step", 1)):
        none = values["none"][key]
        print_row(f"{key}, no session", f"{median([v * 1e6 for v in none]):.1f} us")
        for name in ARMS[1:]:
            theirs = values[name][key]
            added = difference([v * 1e9 for v in theirs], [v * 1e9 for v in none])
            per_call = f"{added.middle / calls:.0f} ns per module, " if calls > 1 else ""
            print_row(f"{key}, {name}", f"{per_call}{ratio(theirs, none):.3f}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.stdout.write(f"{json.dumps(measure(sys.argv[1]))}\n")
    else:
        main()
