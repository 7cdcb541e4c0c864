"""Calls of ``triton.profiler`` that record nothing; ``upstream_behaviour.py`` makes them."""

from __future__ import annotations

import copy
import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS: dict[str, Callable[[], Any]] = {}


def call(function: Callable[[], Any]) -> Callable[[], Any]:
    """Note a function by its name."""
    CALLS[function.__name__] = function
    return function


def module(name: str) -> Any:
    """Return a submodule."""
    return importlib.import_module(f"triton.profiler.{name}")


@call
def texts_of_modes() -> Any:
    mode = module("mode")
    return [
        str(mode.PCSampling()),
        str(mode.Default()),
        str(mode.MMA(optimizations="clock32, time_shift", buffer_size=64)),
        str(mode.Default(granularity="cta", sampling_strategy="selective", sampling_options="0,2")),
        repr(mode.Default().optimizations),
        mode.InstrumentationMode("mine").name,
        str(mode.Optimize.CLOCK32),
        mode.Default() == mode.Default(),
        mode.Default().name,
    ]


@call
def mode_without_an_interval() -> Any:
    return module("mode").PCSampling(interval=0)


@call
def unknown_granularity() -> Any:
    return module("mode").Default(granularity="lane")


@call
def unknown_optimization() -> Any:
    return module("mode").Default(optimizations="fast")


@call
def option_that_a_mode_lacks() -> Any:
    return module("mode").Default(size=1)


@call
def peak_rates() -> Any:
    specs = module("specs")
    found = [specs.max_flops("CUDA", arch, 16, 100, 1.5e6) for arch in ("80", "89", "90", "100")]
    found += [specs.max_flops("HIP", arch, 8, 100, 1.5e6) for arch in specs.amd_fp8_flops_by_arch]
    found.append(specs.flops_by_device["CUDA"]["90"](8, num_sms=10, clock_rate=1e6))
    found += [specs.max_bps("CUDA", "90", 6144, 2.6e6), specs.max_bps("HIP", "gfx942", 0, 0)]
    return [round(each / 1e9, 3) for each in found]


@call
def unknown_device() -> Any:
    return module("specs").max_flops("TPU", "1", 8, 1, 1)


@call
def unknown_architecture() -> Any:
    return module("specs").max_flops("CUDA", "1", 8, 1, 1)


@call
def hooks_by_priority() -> Any:
    hooks = module("hooks.hook")
    launch = module("hooks.launch").LaunchHook
    seen: list[Any] = []

    class Own(hooks.Hook):
        priority = 7

        def init_handle(self, *arguments: Any) -> None: ...
        def enter(self, metadata: Any) -> None: ...
        def exit(self, metadata: Any) -> None: ...
        def activate(self) -> None:
            seen.append("on")

        def deactivate(self) -> None:
            seen.append("off")

    own, manager = Own(), hooks.HookManager
    manager.register(own, 0)
    manager.register(launch(), 0)
    manager.register(own, 1)
    seen.append([type(each).__name__ for each in manager.active_hooks])
    seen.append([manager.session_hooks[0][own], manager.session_hooks[1][launch()]])
    manager.deactivate(0)
    seen.append([type(each).__name__ for each in manager.active_hooks])
    manager.unregister(1)
    manager.activate(0)
    seen.append(len(manager.active_hooks))
    manager.unregister()
    seen.append([len(manager.active_hooks), dict(manager.session_hooks)])
    return seen


@call
def facts_of_the_launch_hook() -> Any:
    launch = module("hooks.launch")
    hook = launch.LaunchHook()
    hook.configure(include="a.*", exclude=None)
    hook.configure()
    variables = [getattr(launch, name).get() for name in ("id", "op_name", "enabled", "in_hook")]
    return [hook is launch.LaunchHook(), hook.priority, variables]


@call
def facts_of_the_instrumentation_hook() -> Any:
    instrumentation = module("hooks.instrumentation")
    kind = instrumentation.InstrumentationHook
    hook = kind("default:optimizations=clock32:buffer_size=64")
    return [
        [kind.priority, kind.active_count, kind.enable_host_buffer, kind.host_buffer],
        [kind.profile_buffer_size, kind.profile_buffer_alignment, instrumentation.VERSION],
        [str(hook.mode), str(kind(None).mode), str(kind(module("mode").MMA()).mode)],
    ]


@call
def malformed_mode_of_the_instrumentation_hook() -> Any:
    return module("hooks.instrumentation").InstrumentationHook("default:x")


@call
def unknown_mode_of_the_instrumentation_hook() -> Any:
    return module("hooks.instrumentation").InstrumentationHook("cycles")


@call
def factors_of_the_viewer() -> Any:
    viewer = module("viewer")
    tables = ("time", "avg_time", "cpu_time", "avg_cpu_time", "bytes")
    found = [list(getattr(viewer, f"{name}_factor_dict")) for name in tables]
    derivable = {key: list(each) for key, each in viewer.derivable_metrics.items()}
    return [found, viewer.default_flop_factor_dict, derivable]


@call
def metrics_that_the_viewer_finds() -> Any:
    match = module("viewer").match_available_metrics
    return [match("TIME", ["time (ns)"], ["x"]), match(["x", "count"], ["count"], ["x"])]


@call
def metric_that_the_viewer_does_not_find() -> Any:
    return module("viewer").match_available_metrics("y", ["time (ns)"], ["x"])


@call
def frames_that_the_viewer_removes() -> Any:
    def node(name: str, *children: Any, **metrics: int) -> Any:
        return {"frame": {"name": name}, "metrics": metrics, "children": list(children)}

    hidden = "__proton_launch_metadata"
    root = node(
        "ROOT",
        node("a", node(hidden, node("k", x=1))),
        node("b", x=1),
        node("c"),
        node("d", node(f"{hidden}:k", x=1), node("e", x=2)),
    )
    return module("viewer").remove_frames([copy.deepcopy(root), {"CUDA": {}}])


@call
def scopes_in_kernels_outside_of_kernels() -> Any:
    language = module("language")
    language.enable_semantic("triton")
    language.disable_semantic("triton")
    with language.scope("a") as entered:
        pass
    return entered


@call
def targets_of_the_command() -> Any:
    command = module("proton")
    script = Path(tempfile.mkdtemp(), "script.py")
    script.write_text("import sys\nsys.exit(len(sys.argv))\n")
    return [
        command.is_pytest("/bin/pytest"),
        command.is_pytest("a.py"),
        command.execute_as_main(str(script), ["a", "b"]),
    ]
