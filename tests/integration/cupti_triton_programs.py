"""Launches as Triton makes them, on the doubles: cupti_triton_programs.py FOLDER.

Run by test_cupti_triton.py in a process of its own, each program in a session of its own. Triton's
hook chains and ``LazyDict`` are real; instead of a compiled kernel the double of libcupti is
launched.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from doubles import Cupti
from triton import knobs
from triton.compiler import LazyDict

import proton_bench as proton

Describe = Callable[[], Mapping[str, Any]]
cupti = Cupti()


def launch(name: str, describe: Describe | None = None) -> None:
    """Do what Triton's launcher does."""
    metadata = LazyDict({"name": name, "function": 1, "stream": 7})
    if describe is not None:
        metadata.add(describe, ())
    knobs.runtime.launch_enter_hook(metadata)
    cupti.launch(name, 7)
    knobs.runtime.launch_exit_hook(metadata)


def named(number: int = 0) -> Mapping[str, Any]:
    """Return metadata with a name and metrics."""
    return {"name": f"mm_{number}", "flops32": 8, "bytes": 4.0, "extra": 2}


def renamed(path: str) -> None:
    """A kernel that its metadata renames."""
    proton.start(path, backend="cupti", hook="triton")
    with proton.scope("layer"):
        launch("mm_kernel", named)
        launch("mm_kernel", named)
        launch("softmax_kernel")


def unhooked(path: str) -> None:
    """The same launches without the hook."""
    proton.start(path, backend="cupti")
    with proton.scope("layer"):
        launch("mm_kernel", named)
        launch("softmax_kernel")


def nested(path: str, context: str = "shadow") -> None:
    """Metadata that launches kernels of its own, hooked and not."""

    def describe() -> Mapping[str, Any]:
        launch("reduce_kernel", named)
        cupti.launch("torch_sum", 7)
        return {"n": 1}

    proton.start(path, backend="cupti", hook="triton", context=context)
    with proton.scope("layer"):
        launch("mm_kernel", describe)


def nested_python(path: str) -> None:
    """The same with Python frames instead of scopes."""
    nested(path, "python")


def described_python(path: str) -> None:
    """Metrics of metadata stand on the kernel's own node also below Python frames."""
    proton.start(path, backend="cupti", hook="triton", context="python")
    metadata = LazyDict({"name": "mm_kernel", "function": 1, "stream": 7})
    metadata.add(named, ())
    driver = cupti._functions["launch"]
    # On one line and without frames between, as in Triton's compiled launcher.
    knobs.runtime.launch_enter_hook(metadata), driver(b"mm_kernel", 7)
    knobs.runtime.launch_exit_hook(metadata)


def failing(path: str) -> None:
    """Metadata that raises, at every second launch."""

    def fail() -> Mapping[str, Any]:
        raise KeyError("BLOCK_M")

    proton.start(path, backend="cupti", hook="triton")
    for _ in range(3):
        launch("mm_kernel", fail)
        launch("mm_kernel", lambda: {"n": 1})


def threads(path: str) -> None:
    """Two hundred kernels, each a hundred times, on eight threads."""

    def work(first: int) -> None:
        for number in range(first, 200, 8):
            for _ in range(100):
                launch(f"kernel_{number}", lambda: {"n": 1})

    proton.start(path, backend="cupti", hook="triton")
    workers = [threading.Thread(target=work, args=(first,)) for first in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def third_party(path: str) -> None:
    """A hook of the target stays, before and after."""
    heard: list[str] = []

    def users_hook(metadata: Any) -> None:
        heard.append(metadata.data["name"])

    knobs.runtime.launch_enter_hook.add(users_hook)
    launch("before", named)
    proton.start(path, backend="cupti", hook="triton")
    launch("during", named)
    proton.finalize()
    launch("after", named)
    if heard != ["before", "during", "after"]:
        sys.exit(f"the hook heard {heard}")


def tuned(path: str) -> None:
    """Triton's own autotuner, whose trials run on the double."""
    import triton
    from triton.runtime.autotuner import Autotuner

    def tuned_kernel() -> None:
        pass

    class Function:
        arg_names = ("n",)
        fn = staticmethod(tuned_kernel)

        def run(self, *args: object, **kwargs: object) -> None:
            del args, kwargs
            launch("tuned_kernel")

    def bench(call: Callable[[], object], quantiles: object) -> list[float]:
        del quantiles
        call()
        call()
        return [1.0, 1.0, 1.0]

    configs = [triton.Config({"BLOCK": block}) for block in (32, 64)]
    names = Autotuner.__init__.__code__.co_varnames
    optional = {"do_bench": bench} if "do_bench" in names else {}
    tuner = Autotuner(Function(), ("n",), configs, ["n"], None, None, **optional)
    proton.start(path, backend="cupti", hook="triton")
    with proton.scope("layer"):
        tuner.run(4)
        tuner.run(4)


PROGRAMS = (
    renamed,
    unhooked,
    nested,
    nested_python,
    described_python,
    failing,
    threads,
    tuned,
    third_party,  # its hook stays
)

if __name__ == "__main__":
    for program in PROGRAMS:
        program(str(Path(sys.argv[1]) / program.__name__))
        proton.finalize()
